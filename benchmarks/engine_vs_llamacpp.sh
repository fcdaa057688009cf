#!/usr/bin/env bash
# The engine against llama.cpp's server on this machine's CPU: SmolLM2-135M-Instruct (Q4_1), 32 requests of mixed lengths that come
# at once; and against llmc itself with one request at a time.
#   benchmarks/engine_vs_llamacpp.sh [MODEL.gguf]
# Runs of the two alternate, so that both meet the same state of the machine; figures are medians over the rounds. The server has as
# many slots as PEER_SLOTS says, of several the fastest counts.
# Environment: ROUNDS (3), THREADS (all cores), REQUESTS (32), PROMPT (32,512) and OUTPUT (16,128): least and most tokens, PEER_SLOTS
# ("8 32"), PEER_DIR (peer; built there if absent), EXE (a compiled model; otherwise built here), BUILD_DIR (build), SAMPLES (a folder
# that keeps the rounds: further runs add theirs, so that a machine may be quiet for one round at a time). The last line is one JSON object.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-3} threads=${THREADS:-$(nproc)} build=${BUILD_DIR:-build}
model=${1:-$(scripts/fetch-smollm2.sh)}

if [ -z "${EXE:-}" ]; then
  scripts/build.sh llmc llmc-runtime-stub >&2
  EXE=$PWD/$build/bench-smollm2-engine
  "$(scripts/find-llmc.sh)" compile "$model" --max-seqs=32 --max-logits=32 -o "$EXE" >&2
fi
server=$(scripts/peer-llamacpp.sh "${PEER_DIR:-peer}" native server)/llama-server

samples=${SAMPLES:-$(mktemp -d)}
mkdir -p "$samples"
[ -n "${SAMPLES:-}" ] || trap 'rm -rf "$samples"' EXIT
trace=$samples/trace.jsonl
python3 benchmarks/device/make_trace.py "$trace" --requests "${REQUESTS:-32}" --prompt "${PROMPT:-32,512}" --output "${OUTPUT:-16,128}" --ids 1000,40000
before=$(find "$samples" -name 'llmc.*.jsonl' | wc -l)
for ((round = before + 1; round <= before + rounds; round++)); do
  echo "round $round" >&2
  "$EXE" replay --trace "$trace" --threads "$threads" --then --max-running=1 >"$samples/llmc.$round.jsonl"
  for slots in ${PEER_SLOTS:-8 32}; do
    python3 benchmarks/peer_llama_server.py "$server" "$model" "$trace" "$threads" "$slots" >"$samples/peer-$slots.$round.json"
  done
done
python3 - "$samples" "$model" "$threads" <<'PY'
import glob
import json
import os
import statistics
import sys

folder, model, threads = sys.argv[1:]


def rates(pattern, line):
    out = []
    for path in sorted(glob.glob(os.path.join(folder, pattern))):
        with open(path, encoding="utf-8") as file:
            out.append(json.loads(file.read().splitlines()[line])["output_tokens_per_second"])
    return out


median = statistics.median
ours, alone = rates("llmc.*.jsonl", 0), rates("llmc.*.jsonl", 1)
names = sorted({os.path.basename(path).split(".")[0] for path in glob.glob(os.path.join(folder, "peer-*.json"))})
peers = {name.split("-")[1]: rates(f"{name}.*.json", 0) for name in names}
slots = max(peers, key=lambda name: median(peers[name]))
with open(os.path.join(folder, "llmc.1.jsonl"), encoding="utf-8") as file:
    first = json.loads(file.readline())
print(f"{first['requests']} requests: llmc {median(ours):.1f} tokens/s, one at a time {median(alone):.1f}, llama-server with {slots} slots {median(peers[slots]):.1f}")
print(json.dumps({"ratio": round(median(ours) / median(peers[slots]), 3), "over_one_at_a_time": round(median(ours) / median(alone), 3),
                  "model": os.path.basename(model), "threads": int(threads), "requests": first["requests"], "prompt_tokens": first["prompt_tokens"],
                  "output_tokens": first["output_tokens"], "llmc": ours, "one_at_a_time": alone, "llama_server_by_slots": peers,
                  "time_to_first_token": first["time_to_first_token"], "inter_token": first["inter_token"],
                  "engine_us_per_step": first["engine_us_per_step"]}))
PY
