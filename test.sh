#!/usr/bin/env bash
# Installs what is needed, builds, runs every test and closes with the line "N passed, N failed".
#   ./test.sh                    everything
#   ./test.sh unit lit e2e ...   only these: unit lit docs asan fuzz e2e
# Environment: BUILD_DIR (build), JOBS (number of cores).
set -uo pipefail
cd "$(dirname "$0")" || exit 1
export BUILD_DIR=${BUILD_DIR:-build}
sanitized=$BUILD_DIR-asan
jobs=${JOBS:-$(nproc)}
logs=$(realpath -m "$BUILD_DIR/test-logs")
phases=${*:-unit lit docs asan fuzz e2e}
passed=0 failed=0

wants() { [[ " $phases " == *" $1 "* ]]; }
title() { printf '\n=== %s (%d min %d s so far)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }
add() { # PASSED FAILED NAME
  passed=$((passed + $1)) failed=$((failed + $2))
  echo "--- $3: $1 passed, $2 failed"
}
finish() {
  echo
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}
must() { # a step without which nothing else makes sense
  "$@" || { echo "FAIL: $*"; failed=$((failed + 1)); finish; }
}

run_ctest() { # BUILD NAME [ctest options]
  local build=$1 name=$2 out=$logs/$2 counts
  shift 2
  rm -rf "$out" "$out.xml" && mkdir -p "$out"
  GTEST_OUTPUT=xml:$out/ ctest --test-dir "$build" -E llmc-lit -j "$jobs" --output-on-failure --no-tests=error --timeout 900 \
    --output-junit "$out.xml" "$@"
  counts=$(scripts/test-counts.py ctest "$out.xml" "$out") || counts="0 1"
  # shellcheck disable=SC2086
  add $counts "$name"
}

title "packages"
must scripts/install-deps.sh
title "build"
must scripts/build.sh
mkdir -p "$logs"

if wants unit; then
  title "unit tests"
  run_ctest "$BUILD_DIR" unit
fi

if wants lit; then
  title "compiler tests (lit)"
  lit=$(command -v lit-22 || echo /usr/lib/llvm-22/bin/lit)
  rm -f "$logs/lit.json"
  "$lit" -sv -j "$jobs" --output "$logs/lit.json" "$BUILD_DIR/test"
  counts=$(scripts/test-counts.py lit "$logs/lit.json") || counts="0 1"
  # shellcheck disable=SC2086
  add $counts lit
fi

if wants docs; then
  title "generated documentation"
  if scripts/generate-docs.sh --check; then add 1 0 docs; else add 0 1 docs; fi
fi

if wants asan || wants fuzz; then
  title "build of the MLIR-free parts with address and undefined-behaviour sanitizers"
  [ -f "$sanitized/build.ninja" ] ||
    cmake -G Ninja -S . -B "$sanitized" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLLMC_ENABLE_COMPILER=OFF \
      -DLLMC_SANITIZE=address,undefined -DLLMC_ENABLE_FUZZERS=ON -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
      -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >"$logs/asan-configure.log" 2>&1
  must env BUILD_DIR="$sanitized" scripts/build.sh
fi

export UBSAN_OPTIONS=print_stacktrace=1
if wants asan; then
  title "unit tests with sanitizers"
  run_ctest "$sanitized" asan -E 'llmc-fuzz|llmc-lit'
fi
if wants fuzz; then
  title "fuzz targets, 30 seconds each"
  run_ctest "$sanitized" fuzz -R llmc-fuzz
fi

if wants e2e; then
  title "the runtime executable for AArch64"
  scripts/build-aarch64.sh || add 0 1 "the runtime executable for AArch64"
  title "the model"
  must scripts/fetch-smollm2.sh
  title "end to end"
  rm -f "$logs/e2e.counts"
  /usr/bin/python3 -B test/EndToEnd/run.py --llmc "$(scripts/find-llmc.sh)" --model "$(scripts/fetch-smollm2.sh)" \
    --counts "$logs/e2e.counts"
  read -r good bad <"$logs/e2e.counts" || { good=0 bad=1; }
  add "$good" "$bad" end-to-end
fi

finish
