#!/usr/bin/env bash
# Runs fuzz targets side by side for a long time, each on one core, and says what was found.
#   scripts/fuzz.sh [SECONDS] [TARGET...]     default: 1200 seconds, all targets (build-asan/fuzz/targets.txt names them)
# Environment: BUILD_DIR (build; the sanitized build is BUILD_DIR-asan), JOBS (targets at a time; default: all).
# Inputs that reached something new stay in BUILD_DIR-asan/fuzz/corpus/TARGET and are where the next run, and ctest, start;
# inputs that fail go to BUILD_DIR-asan/fuzz/findings. The last line is JSON; the exit code is 1 if anything was found.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
sanitized=$(realpath -m "${BUILD_DIR:-build}-asan")
seconds=1200
[[ ${1:-} =~ ^[0-9]+$ ]] && { seconds=$1; shift; }

[ -f "$sanitized/build.ninja" ] ||
  cmake -G Ninja -S . -B "$sanitized" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLLMC_ENABLE_COMPILER=OFF -DLLMC_SANITIZE=address,undefined \
    -DLLMC_ENABLE_FUZZERS=ON -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DCMAKE_C_COMPILER_LAUNCHER=ccache \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >"$sanitized.log" 2>&1 || { tail "$sanitized.log"; exit 1; }
cmake "$sanitized" >/dev/null
known=$(cut -d'|' -f1 "$sanitized/fuzz/targets.txt")
targets=${*:-$known}
for name in $targets; do
  grep -qx -- "$name" <<<"$known" || { echo "expected one of: ${known//$'\n'/ }; got $name" >&2; exit 2; }
done
# shellcheck disable=SC2086
read -ra binaries <<<"$(printf 'llmc-fuzz-%s ' $targets)"
ninja -C "$sanitized" "${binaries[@]}" >"$sanitized/fuzz/build.log" || { tail "$sanitized/fuzz/build.log"; exit 1; }

export UBSAN_OPTIONS=print_stacktrace=1
run_target() { # NAME
  local name=$1 work=$sanitized/fuzz line binary options seeds
  line=$(grep "^$name|" "$work/targets.txt")
  IFS='|' read -r _ binary options seeds <<<"$line"
  # shellcheck disable=SC2086
  bash -c 'time "$@"' fuzz "$binary" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$work/findings/$name-" \
    $options "$work/corpus/$name" $seeds >"$work/$name.log" 2>&1
  echo "exit code $?" >>"$work/$name.log"
}
export -f run_target
export sanitized seconds
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P "${JOBS:-64}" -I{} bash -c 'run_target {}'
# shellcheck disable=SC2086
exec python3 - "$sanitized/fuzz" "$seconds" $targets <<'PYTHON'
import json
import os
import re
import sys

folder, seconds, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def last(pattern, text, kind=int):
    found = re.findall(pattern, text)
    return kind(found[-1]) if found else None


def minutes(text, name):
    found = re.search(rf"^{name}\s+(\d+)m([\d.]+)s", text, re.M)
    return int(found[1]) * 60 + float(found[2]) if found else 0.0


rows = []
print(f"{'target':14} {'runs':>11} {'edges':>6} {'corpus':>6} {'CPU s':>7} {'peak MiB':>8}  findings")
for name in names:
    text = open(os.path.join(folder, name + ".log"), encoding="utf-8", errors="replace").read()
    code = last(r"exit code (\d+)", text)
    row = dict(target=name, runs=last(r"stat::number_of_executed_units: (\d+)", text), edges=last(r"cov: (\d+)", text),
               corpus=last(r"corp: (\d+)", text), cpu_seconds=round(minutes(text, "user") + minutes(text, "sys"), 1),
               peak_mib=last(r"stat::peak_rss_mb:\s+(\d+)", text), finding=None if code == 0 else (
                   last(r"Test unit written to (\S+)", text, str) or f"exit code {code}: {name}.log"))
    rows.append(row)
    print(f"{name:14} {row['runs'] or 0:11,} {row['edges'] or 0:6} {row['corpus'] or 0:6} {row['cpu_seconds']:7.0f} "
          f"{row['peak_mib'] or 0:8}  {row['finding'] or 'none'}")
print(json.dumps(dict(seconds=seconds, findings=sum(row["finding"] is not None for row in rows), targets=rows)))
sys.exit(any(row["finding"] for row in rows))
PYTHON
