#!/usr/bin/env bash
# Makes the folder that benchmarks/device.sh needs on a machine with a GPU: compiled models, tests, goldens. Needs no GPU; the
# machine with one needs no llmc, no compiler and no network, only python3 with numpy (and torch for the peer).
#   scripts/make-device-kit.sh OUT [--max-part=48MiB]
# OUT/part-1 has everything but the weights of SmolLM2, which follow as shards in OUT/part-2 and so on; no part is larger than
# --max-part, so that a kit can be carried piece by piece. Then, there:  OUT/part-1/device.sh OUT
# Environment: BUILD_DIR (build), TARGET (cuda:sm_90a), MODEL (SmolLM2; fetched), CHECK_MODELS (24 random shapes for
# llmc-kernel-check), TOOLS_DIR (BUILD_DIR; has llmc-cts and llmc-kernel-check), LLMC_CACHE_DIR (kernel cache), NO_LARGE (set:
# leave out the 8B shape).
set -euo pipefail
out='' max_part=48MiB
for argument in "$@"; do
  case $argument in
    --max-part=*) max_part=${argument#*=} ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "make-device-kit.sh: unknown flag $argument" >&2; exit 2 ;;
    *) out=$(realpath -m "$argument") ;;
  esac
done
: "${out:?usage: make-device-kit.sh OUT [--max-part=48MiB]}"
cd "$(dirname "$0")/.."
target=${TARGET:-cuda:sm_90a}
max_bytes=$(python3 - "$max_part" <<'PY'
import re, sys
found = re.fullmatch(r"(\d+)(MiB|MB)", sys.argv[1]) or sys.exit(f"make-device-kit.sh: --max-part: expected a size such as 48MiB, got {sys.argv[1]}")
print(int(found[1]) * {"MiB": 1 << 20, "MB": 10**6}[found[2]])
PY
)
llmc=$(scripts/find-llmc.sh)
bin=$(dirname "$llmc")
stub=$(realpath "$bin/llmc-runtime-stub")
model=${MODEL:-$(scripts/fetch-smollm2.sh)}

if [ -e "$out" ] && [ ! -e "$out/.llmc-device-kit" ] && [ -n "$(ls -A "$out")" ]; then
  echo "make-device-kit.sh: $out is no kit and not empty; not touched" >&2
  exit 1
fi
rm -rf "$out"
part=$out/part-1 stage=$out/stage
mkdir -p "$out"
touch "$out/.llmc-device-kit"
mkdir -p "$part" "$stage"/{tiny,check,llama-8b,llama-1b,ops} "$out/models"
: >"$out/reasons.tsv"

# The small packages share one runtime, packed once: what stands before each is a script that starts it.
runtime_script=$out/runtime-script
cat >"$runtime_script" <<'SH'
#!/bin/sh
exec "$(dirname "$0")/../llmc-runtime" "$@" --package "$0"
SH
strip -o "$stage/llmc-runtime" "$stub"

# compile NAME OUTPUT MODEL FLAGS...: what fails the gate of the kernels goes as PTX, for the driver to compile; what fails
# altogether is left out. Both with the reason.
compile() {
  local name=$1 output=$2 reason
  shift 2
  if "$llmc" compile "$@" -o "$output" >"$out/compile.log" 2>&1; then
    echo "  $name: $(grep -o 'no spills, at most [0-9]* registers' "$out/compile.log" || echo compiled)"
    return
  fi
  reason=$(grep -m1 'error:' "$out/compile.log" || tail -n1 "$out/compile.log")
  reason=${reason#llmc: error: }
  if [ "$target" != cpu ] && "$llmc" compile "$@" --ptx-only -o "$output" >"$out/compile.log" 2>&1; then
    echo "  $name: PTX ONLY: $reason"
    printf 'ptx_only\t%s\t%s\n' "$name" "$reason" >>"$out/reasons.tsv"
    return
  fi
  echo "  $name: LEFT OUT: $reason"
  printf 'left_out\t%s\t%s\n' "$name" "$reason" >>"$out/reasons.tsv"
  rm -f "$output"
}

echo "SmolLM2 for $target"
compile smollm2 "$stage/smollm2" "$model" --target="$target" --weights=separate --max-shard-size="$max_bytes"

echo "tiny models"
python3 scripts/make-tiny-models.py "$out/models" all >/dev/null
for path in "$out"/models/*; do
  name=$(basename "$path" .gguf)
  compile "tiny/$name" "$stage/tiny/$name" "$path" --target="$target" --stub="$runtime_script"
done
compile tiny/llama-tied.f32-on-cpu "$stage/tiny/llama-tied.f32-on-cpu" "$out/models/llama-tied.f32.gguf" --target=cpu \
  --compute=f32 --stub="$runtime_script"
if [ "$target" != cpu ]; then
  compile tiny/llama-tied.q4_0-trap "$stage/tiny/llama-tied.q4_0-trap" "$out/models/llama-tied.q4_0.gguf" --target="$target" \
    --trap-checks --stub="$runtime_script"
fi

if [ -z "${NO_LARGE:-}" ]; then
  echo "the shape of Llama-3.1-8B, random weights"
  for shape in llama-8b llama-1b; do
    mkdir -p "$out/$shape"
    cp "benchmarks/device/$shape.json" "$out/$shape/config.json"
  done
  for storage in bf16 q4_0 q4_k; do
    compile "llama-8b/$storage" "$stage/llama-8b/$storage" "$out/llama-8b" --target="$target" --weights=random:1 \
      --random-storage="$storage" --stub="$runtime_script"
  done
  scripts/make-tokenizer.py "$out/llama-8b/tokenizer.json" # of the package that is served
  # A whole prompt in one step, and so in one launch of each op; as many sequences as the trace of 512 requests has.
  for shape in llama-8b llama-1b; do
    compile "$shape/bf16-8192" "$stage/$shape/bf16-8192" "$out/$shape" --target="$target" --weights=random:1 \
      --max-tokens-per-step=8192 --max-seqs=512 --max-logits=512 --stub="$runtime_script"
  done

  echo "shapes of products and attention"
  scripts/make-op-shapes.py "$out/op-shapes"
  for path in "$out"/op-shapes/*; do
    name=$(basename "$path")
    compile "ops/$name" "$stage/ops/$name" "$path" --target="$target" --weights=random:1 --random-storage=bf16 \
      --max-tokens-per-step=16384 --stub="$runtime_script"
    cp "$path/config.json" "$stage/ops/$name.json"
  done
fi

echo "random shapes for llmc-kernel-check"
if [ -e scripts/make-kernel-check-models.py ]; then
  python3 scripts/make-kernel-check-models.py "$out/check-models" "${CHECK_MODELS:-24}" 1
  while read -r name storage; do
    compile "check/$name" "$stage/check/$name" "$out/check-models/$name" --target="$target" --weights=random:1 \
      --random-storage="$storage" --stub="$runtime_script"
  done <"$out/check-models/list.txt"
else
  echo "  none: there is no scripts/make-kernel-check-models.py"
fi

for tool in llmc-cts llmc-kernel-check; do
  found=$(find ${TOOLS_DIR:-"$bin/.."} -name "$tool" -type f -perm -u+x | head -n1) # TOOLS_DIR may be several folders
  if [ -n "$found" ]; then
    strip -o "$stage/$tool" "$found"
  else
    echo "  $tool: LEFT OUT: not built in ${TOOLS_DIR:-$(realpath "$bin/..")}"
    printf 'left_out\t%s\tnot built\n' "$tool" >>"$out/reasons.tsv"
  fi
done

number=2
for shard in "$stage"/smollm2.weights*; do
  [ -e "$shard" ] || continue
  mkdir -p "$out/part-$number"
  mv "$shard" "$out/part-$number/"
  number=$((number + 1))
done
mkdir -p "$part"/{device,EndToEnd,data}
cp benchmarks/device.sh benchmarks/serve_load.py "$part/"
cp benchmarks/device/*.py benchmarks/device/llama-{8b,1b}.json "$part/device/"
cp test/EndToEnd/{common,exe,divergence}.py "$part/EndToEnd/"
cp test/data/{tiny-goldens.json,smollm2-greedy.json,smollm2-logits.json.gz,prompts.jsonl} "$part/data/"
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
changed=$(git status --porcelain 2>/dev/null | grep -vc '^??' || true)
python3 - "$out" "$target" "$commit" "$changed" "$("$llmc" --version | head -n1)" <<'PY'
import json, os, sys
out, target, commit, changed, version = sys.argv[1:]
with open(os.path.join(out, "reasons.tsv"), encoding="utf-8") as file:
    reasons = [line.rstrip("\n").split("\t", 2) for line in file]
kit = dict(target=target, commit=commit, changed_files=int(changed or 0), llmc=version,
           **{kind: {name: reason for which, name, reason in reasons if which == kind} for kind in ("left_out", "ptx_only")})
with open(os.path.join(out, "part-1", "kit.json"), "w", encoding="utf-8") as file:
    json.dump(kit, file, indent=1, ensure_ascii=False)
PY
tar -C "$stage" -czf "$part/packages.tar.gz" .
rm -rf "$stage" "$out"/{models,check-models,op-shapes,llama-8b,llama-1b,reasons.tsv,compile.log,runtime-script}

status=0
for folder in "$out"/part-*; do
  bytes=$(find "$folder" -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')
  printf '%s: %.1f MB\n' "$folder" "$(awk "BEGIN {print $bytes / 1e6}")"
  if [ "$bytes" -gt "$max_bytes" ]; then
    echo "make-device-kit.sh: $folder is larger than $max_part" >&2
    status=1
  fi
done
du -sh --apparent-size "$out" | awk '{print "all: " $1}'
exit $status
