#!/usr/bin/env bash
# Configures and builds llmc. Usage: scripts/build.sh [TARGET...]     (default: everything)
# Environment: BUILD_DIR (build), JOBS (number of cores).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
jobs=${JOBS:-$(nproc)}

# The precompiled header would make every ccache look-up miss without these.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

if [ ! -f "$build/build.ninja" ]; then
  echo "configuring $build"
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
NINJA_STATUS='[%f/%t %es] ' ninja -C "$build" -j "$jobs" "$@"
