#!/usr/bin/env bash
# One system prompt of 2,000 tokens and 100 users: it is computed once, and the time to the first token of a user is that of the next
# turn of a conversation whose 2,000 tokens are in the cache.
#   benchmarks/prefix_sharing.sh EXE [flags of replay]
# Users and turns alternate, one at a time (SPACING seconds apart, 2), each with 24 tokens of its own. The last line is one JSON object.
set -euo pipefail
exe=$(realpath "${1:?usage: prefix_sharing.sh EXE [flags of replay]}")
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 - "$folder/trace.jsonl" "${SPACING:-2}" <<'PY'
import json
import sys

path, spacing = sys.argv[1], float(sys.argv[2])
lines, at = [], 0.0


def add(prefix, pause=1):
    global at
    lines.append({"arrival": round(at, 3), "prompt": 2024, "output": 4, "prefix": prefix, "prefix_tokens": 2000})
    at += pause * spacing


add("talk", 8)  # the first turn
add("system", 8)  # the first user
for user in range(2, 101):
    if user > 90:
        add("talk")
    add("system")
with open(path, "w", encoding="utf-8") as file:
    for line in lines:
        file.write(json.dumps(line) + "\n")
PY
"$exe" replay --trace "$folder/trace.jsonl" --requests "$folder/requests.csv" --context 4096 "$@" >"$folder/out.json"
python3 - "$folder" <<'PY'
import csv
import json
import statistics
import sys

folder = sys.argv[1]
with open(f"{folder}/requests.csv", encoding="utf-8") as file:
    rows = sorted(csv.DictReader(file), key=lambda row: float(row["arrival_s"]))
times = [float(row["first_token_s"]) for row in rows]
cached = [int(float(row["cached_tokens"])) for row in rows]
turns, users = times[-20::2], times[-19::2]  # the last twenty alternate
print(json.dumps({"user_over_next_turn": round(statistics.median(users) / statistics.median(turns), 3),
                  "user_s": round(statistics.median(users), 4), "next_turn_s": round(statistics.median(turns), 4),
                  "first_user_s": round(times[1], 3), "times_the_system_prompt_was_computed": sum(c == 0 for c in cached[1:]),
                  "cached_tokens": sum(cached), "users": 100, "system_tokens": 2000}))
PY
