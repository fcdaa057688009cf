#!/usr/bin/env bash
# Prints the path of the built compiler. Environment: BUILD_DIR (build).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
for path in "$build/bin/llmc" "$build/tools/llmc/llmc"; do
  if [ -x "$path" ]; then
    realpath "$path"
    exit 0
  fi
done
echo "find-llmc.sh: expected the compiler in $build, got none; run scripts/build.sh" >&2
exit 1
