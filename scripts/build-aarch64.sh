#!/usr/bin/env bash
# Cross-builds the executable that AArch64 packages start with, and puts it where llmc looks; beside it the conformance suite for
# such packages, which tests run. Usage: scripts/build-aarch64.sh   (four minutes on two cores, once)
# Headers and libraries are Debian's, of the configured sources: unpacked to a folder of their own, so that nothing is installed
# and no root is needed. Environment: BUILD_DIR (build), JOBS (number of cores), LLMC_SYSROOT (~/.cache/llmc/sysroot-aarch64).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
export LLMC_SYSROOT=${LLMC_SYSROOT:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/llmc/sysroot-aarch64}

# The version of GCC whose C++ library this machine has.
gcc=$(basename "$(find /usr/lib/gcc/*-linux-gnu -mindepth 1 -maxdepth 1 -name '[0-9]*' | sort -V | tail -n 1)")
packages=(
  libc6 libc6-dev linux-libc-dev libgcc-s1 "libgcc-$gcc-dev" "libstdc++-$gcc-dev"
  libpcre2-dev libutf8proc-dev libssl-dev zlib1g-dev libboost1.81-dev libcli11-dev libxxhash-dev nlohmann-json3-dev
)

make_sysroot() { # FOLDER: made elsewhere and moved there, whole
  local scratch folder apt
  mkdir -p "$(dirname "$1")"
  scratch=$(mktemp -d "$1.XXXXXX")
  folder=$scratch/root apt=$scratch/apt
  mkdir -p "$apt"/{lists/partial,archives/partial,debs} "$folder"
  : >"$apt/status"
  # The machine's sources and keys, for another architecture; its own state stays as it is.
  cat >"$apt/apt.conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
EOF
  APT_CONFIG=$apt/apt.conf apt-get update -q
  (cd "$apt/debs" && APT_CONFIG=$apt/apt.conf apt-get download -q "${packages[@]}")
  for deb in "$apt"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner --exclude=./usr/share/doc -C "$folder"
  done
  echo "${packages[*]}" >"$folder/llmc-packages"
  rm -rf "$1"
  mv -T "$folder" "$1"
  rm -rf "$scratch"
}

list=$LLMC_SYSROOT/llmc-packages
if [ "$(cat "$list" 2>/dev/null)" != "${packages[*]}" ]; then
  echo "AArch64: unpacking ${packages[*]} to $LLMC_SYSROOT"
  make_sysroot "$LLMC_SYSROOT"
fi

cross=$build-aarch64
if [ ! -f "$cross/build.ninja" ]; then
  cmake -G Ninja -S . -B "$cross" -DCMAKE_BUILD_TYPE=Release -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake" \
    -DLLMC_SYSROOT="$LLMC_SYSROOT" -DLLMC_ENABLE_COMPILER=OFF -DLLMC_ENABLE_TESTS=OFF \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
BUILD_DIR=$cross scripts/build.sh llmc-runtime-stub llmc-cts
mkdir -p "$build/bin"
install -m 755 "$cross/runtime/tool/llmc-runtime-stub" "$build/bin/llmc-runtime-stub-aarch64"
install -m 755 "$cross/runtime/cts/llmc-cts" "$build/bin/llmc-cts-aarch64"
