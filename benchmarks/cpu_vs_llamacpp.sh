#!/usr/bin/env bash
# llmc against llama.cpp on this machine's CPU, equal threads, runs alternating (cpu_vs_llamacpp.py).
#   benchmarks/cpu_vs_llamacpp.sh [CASE...]      (default: q4_1)
#   q4_1       SmolLM2-135M-Instruct Q4_1, prompt of 512, 128 decoded behind it
#   q4_1-q8    the same with activations in 8 bits as the peer has them (--compute=q8)
#   one-thread q4_1 with one thread
#   long       a prompt of 4,096 tokens; long-q8 with --compute=q8
#   bf16       the same model in BF16 (made by the peer's llama-quantize)
#   1b-q4_0, 1b-q8_0   the shape of Llama-3.2-1B with random weights (scripts/make-random-gguf.py), larger than caches; 1b-q4_0-q8, 1b-q8_0-q8
#   q4_1-phase, bf16-phase, 1b-q4_0-phase, 1b-q8_0-phase   prompts in bf16 (--numerics=phase), for CPUs with AMX: alone, against the
#              peer's native build
#   batch      16 sequences beside one, llmc alone; batch-q8 with --compute=q8, batch-bf16 of the model in BF16
# Environment: ROUNDS (3), THREADS (all cores), PEER_DIR (peer; built there if absent), WORK_DIR (build/bench-cpu: models and
# executables, kept), BUILD_DIR (build). The last line is one JSON object. A case takes about a minute a round, 1b-* some more.
set -euo pipefail
cd "$(dirname "$0")/.."
threads=${THREADS:-$(nproc)}
build=${BUILD_DIR:-build}
work=${WORK_DIR:-$build/bench-cpu}
peer_dir=${PEER_DIR:-peer}
mkdir -p "$work"
scripts/build.sh llmc llmc-runtime-stub >&2
llmc=$(scripts/find-llmc.sh)
peer=$(scripts/peer-llamacpp.sh "$peer_dir")
flags=(--peer "$peer" --rounds "${ROUNDS:-3}")
if grep -qw amx_int8 /proc/cpuinfo && [[ "$*" != *-phase* ]]; then
  flags+=(--peer-avx512 "$(scripts/peer-llamacpp.sh "$peer_dir" avx512)")
fi

smollm2=$(scripts/fetch-smollm2.sh)
compiled() { # MODEL NAME [flags]: the executable, made unless it is newer than llmc
  local exe=$work/$2
  [ "$exe" -nt "$llmc" ] || "$llmc" compile "$1" -o "$exe" "${@:3}" >&2
  echo "$exe"
}
random() { # TYPE
  local file=$work/1b-${1,,}.gguf
  [ -e "$file" ] || python3 scripts/make-random-gguf.py "$file" --type "$1" >&2
  echo "$file"
}
bf16_model() {
  local file=$work/smollm2-bf16.gguf
  [ -e "$file" ] || "$peer/llama-quantize" --allow-requantize "$smollm2" "$file" BF16 >&2
  echo "$file"
}
add() { flags+=(--case "$1:$2:$3:$4:$5:$6${7:+:$7}"); } # NAME EXE MODEL THREADS PROMPT GEN FLAGS
for case in "${@:-q4_1}"; do
  compute=()
  [[ $case == *-q8 ]] && compute=(--compute=q8)
  [[ $case == *-phase ]] && compute=(--numerics=phase)
  case $case in
    q4_1 | q4_1-q8 | q4_1-phase) add "$case" "$(compiled "$smollm2" "$case" "${compute[@]}")" "$smollm2" "$threads" 512 128 ;;
    one-thread) add "$case" "$(compiled "$smollm2" q4_1)" "$smollm2" 1 512 64 ;;
    long) add "$case" "$(compiled "$smollm2" q4_1)" "$smollm2" "$threads" 4096 0 ;;
    long-q8) add "$case" "$(compiled "$smollm2" q4_1-q8 "${compute[@]}")" "$smollm2" "$threads" 4096 0 ;;
    bf16 | bf16-phase)
      model=$(bf16_model)
      add "$case" "$(compiled "$model" "$case" "${compute[@]}")" "$model" "$threads" 512 64
      ;;
    1b-q4_0 | 1b-q8_0 | 1b-q4_0-q8 | 1b-q8_0-q8 | 1b-q4_0-phase | 1b-q8_0-phase)
      type=${case#1b-} type=${type%-q8} type=${type%-phase}
      model=$(random "${type^^}")
      add "$case" "$(compiled "$model" "$case" "${compute[@]}")" "$model" "$threads" 128 32
      ;;
    batch) add "$case" "$(compiled "$smollm2" q4_1)" "$smollm2" "$threads" 128 48 batch ;;
    batch-q8) add "$case" "$(compiled "$smollm2" q4_1-q8 "${compute[@]}")" "$smollm2" "$threads" 128 48 batch ;;
    batch-bf16) add "$case" "$(compiled "$(bf16_model)" bf16)" "$(bf16_model)" "$threads" 128 48 batch ;;
    *)
      echo "cpu_vs_llamacpp.sh: expected a case of its header, got \"$case\"" >&2
      exit 2
      ;;
  esac
done
exec python3 benchmarks/cpu_vs_llamacpp.py "${flags[@]}"
