#!/usr/bin/env bash
# A Python environment with OpenAI's client (PyPI), for the end-to-end tests of `serve`; prints its interpreter's path.
# Usage: scripts/openai-client.sh [DIR]     (default: models/openai-client; 60 MB)
set -euo pipefail
dir=${1:-$(dirname "$0")/../models/openai-client}
client=openai==3.57.0
mkdir -p "$(dirname "$dir")"
dir=$(cd "$(dirname "$dir")" && pwd)/$(basename "$dir")
python=$dir/bin/python

if ! "$python" -c 'import openai' 2>/dev/null; then
  echo "fetching $client (PyPI)" >&2
  rm -rf "$dir"
  python3 -m venv "$dir" >&2
  "$python" -m pip -q --disable-pip-version-check install "$client" >&2
fi
echo "$python"
