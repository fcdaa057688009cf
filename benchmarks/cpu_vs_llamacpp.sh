#!/usr/bin/env bash
# llmc against llama.cpp on this machine's CPU: SmolLM2-135M-Instruct (Q4_1), prompt of 512 tokens, 128 generated.
#   benchmarks/cpu_vs_llamacpp.sh [MODEL.gguf]
# Runs of the two alternate, so that both meet the same state of the machine; figures are medians over the rounds. Where the
# CPU has AMX the peer is built twice, and prefill_ratio is against its AVX-512 build (llmc does not use AMX yet).
# Environment: ROUNDS (5), THREADS (all cores), PROMPT (512), GEN (128), PEER_DIR (peer; built there if absent), EXE (a compiled
# model; otherwise built here), BUILD_DIR (build). The last line is one JSON object.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5} threads=${THREADS:-$(nproc)} prompt=${PROMPT:-512} gen=${GEN:-128}
peer_dir=${PEER_DIR:-peer}
build=${BUILD_DIR:-build}
model=${1:-$(scripts/fetch-smollm2.sh)}

if [ -z "${EXE:-}" ]; then
  scripts/build.sh llmc llmc-runtime-stub >&2
  EXE=$PWD/$build/bench-smollm2
  "$(scripts/find-llmc.sh)" compile "$model" -o "$EXE" >&2
fi

declare -A peers=([peer]=$(scripts/peer-llamacpp.sh "$peer_dir"))
if grep -qw amx_int8 /proc/cpuinfo; then
  peers[peer_avx512]=$(scripts/peer-llamacpp.sh "$peer_dir" avx512)
fi

samples=$(mktemp -d)
trap 'rm -rf "$samples"' EXIT
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  "$EXE" bench --threads="$threads" --prompt="$prompt" --gen="$gen" --repeat=1 >"$samples/llmc.$round.json"
  for name in "${!peers[@]}"; do
    "${peers[$name]}/llama-bench" -m "$model" -p "$prompt" -n "$gen" -t "$threads" -r 1 -o json \
      >"$samples/$name.$round.json" 2>"$samples/$name.log"
  done
done
python3 benchmarks/cpu_vs_llamacpp.py "$samples" "$model" "$threads" "$prompt" "$gen"
