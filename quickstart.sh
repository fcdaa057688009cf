#!/usr/bin/env bash
# From a fresh Debian 12 machine to a compiled model that answers: installs packages, builds llmc, fetches SmolLM2, compiles
# it into the executable ./smollm2 and asks it a question. Safe to run again; what is done already is skipped.
set -euo pipefail
cd "$(dirname "$0")"
step() { printf '\n[%s] %s\n' "$1" "$2"; }

step 1/5 "Debian packages"
scripts/install-deps.sh

step 2/5 "building llmc (some minutes the first time)"
scripts/build.sh llmc llmc-runtime-stub

step 3/5 "the model: SmolLM2-135M-Instruct"
model=$(scripts/fetch-smollm2.sh)
echo "$model"

step 4/5 "llmc compile $(basename "$model") -o smollm2"
"$(scripts/find-llmc.sh)" compile "$model" -o smollm2

question="What is the capital of France?"
step 5/5 "./smollm2 run \"$question\""
./smollm2 run "$question"
