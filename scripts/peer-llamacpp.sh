#!/usr/bin/env bash
# Builds llama.cpp, the peer on CPUs, from the sdist of llama-cpp-python, and prints the folder of its programs.
# Usage: scripts/peer-llamacpp.sh DIR [native|avx512] [server]     (about 12 minutes on two cores, once; llama-server as many more)
# clang-22, native, no OpenMP is the fastest build found on machines with AMX, AVX-512 and AVX2 alike. avx512 is the
# native build less AMX.
set -euo pipefail
dir=${1:?usage: peer-llamacpp.sh DIR [native|avx512]}
isa=${2:-native}
programs=(llama-bench llama-quantize llama-perplexity)
wanted=llama-bench
if [ "${3:-}" = server ]; then
  programs+=(llama-server) wanted=llama-server
fi
mkdir -p "$dir"
build=$dir/build
flags=(-DGGML_NATIVE=ON)
if [ "$isa" = avx512 ]; then
  build=$dir/build-avx512
  flags=(-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON
    -DGGML_AVX512=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON)
fi

if [ ! -x "$build/bin/$wanted" ]; then
  if [ ! -d "$dir/src" ]; then
    python3 -m pip --disable-pip-version-check download -q --no-deps --no-binary :all: -d "$dir" llama-cpp-python==0.3.36 >&2
    mkdir -p "$dir/src.part"
    tar xzf "$dir"/llama_cpp_python-*.tar.gz -C "$dir/src.part" --strip-components=1
    mv "$dir/src.part" "$dir/src"
  fi
  cmake -S "$dir/src/vendor/llama.cpp" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 -DGGML_OPENMP=OFF "${flags[@]}" \
    -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER="$([ "$wanted" = llama-server ] && echo ON || echo OFF)" >"$build.configure.log" 2>&1
  echo "building llama.cpp ($isa), log in $build.log" >&2
  ninja -C "$build" "${programs[@]}" >"$build.log" 2>&1
fi
echo "$build/bin"
