#!/usr/bin/env bash
# Installs the Debian packages that building and testing llmc needs (Debian 12 or newer, by name, from the configured
# sources). Does nothing when all are there. Usage: scripts/install-deps.sh   (as root, or with sudo)
set -euo pipefail

packages=(
  # the compiler: MLIR 22.1 as a shared library, its tools, LLD as a library, sanitizer and fuzzer runtimes
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22 liblld-22-dev libclang-rt-22-dev
  # what LLVM's CMake files look for
  zlib1g-dev libzstd-dev libxml2-dev libncurses-dev
  # building
  cmake ninja-build ccache pkg-config git ca-certificates
  # libraries
  nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libxxhash-dev
  # tests
  libgtest-dev python3 python3-venv python3-pip python3-numpy python3-xxhash
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#packages[@]} are installed"
  exit 0
fi

echo "packages: installing ${missing[*]}"
sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install-deps.sh: expected root or sudo, got neither" >&2; exit 1; }
  sudo=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -q
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
