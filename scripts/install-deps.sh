#!/usr/bin/env bash
# Installs the Debian packages that building and testing llmc needs (Debian 12 or newer, by name, from the configured
# sources), and ptxas, NVIDIA's assembler, from PyPI where the machine has none (kernels for a GPU are checked with it; without
# one they are compiled all the same). Does nothing when all are there. Usage: scripts/install-deps.sh   (as root, or with sudo)
set -euo pipefail

# The first ptxas of the places where llmc looks (include/llmc/Target/Cubin.h).
ptxas_folder=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/llmc/ptxas/bin
find_ptxas() {
  local place
  for place in "${LLMC_PTXAS:-}" "${CUDA_HOME:+$CUDA_HOME/bin/ptxas}" /usr/local/cuda/bin/ptxas "$(command -v ptxas || true)" \
    "$ptxas_folder/ptxas"; do
    if [ -n "$place" ] && "$place" --version >/dev/null 2>&1; then
      echo "$place"
      return
    fi
  done
}

install_ptxas() {
  local found scratch wheel=nvidia-cuda-nvcc==13.0.88
  found=$(find_ptxas)
  if [ -n "$found" ]; then
    echo "ptxas: $found"
    return
  fi
  echo "ptxas: installing the one of $wheel (PyPI) to $ptxas_folder"
  scratch=$(mktemp -d)
  if /usr/bin/python3 -m pip install -q --disable-pip-version-check --root-user-action=ignore --no-deps --target "$scratch" "$wheel" &&
    found=$(find "$scratch" -name ptxas -type f | head -n 1) && [ -n "$found" ]; then
    mkdir -p "$ptxas_folder"
    install -m 755 "$found" "$ptxas_folder/ptxas.new"
    mv "$ptxas_folder/ptxas.new" "$ptxas_folder/ptxas"
  else
    echo "ptxas: not installed; llmc writes PTX alone for a GPU" >&2
  fi
  rm -rf "$scratch"
}

packages=(
  # the compiler: MLIR 22.1 as a shared library, its tools, LLD as a library, sanitizer and fuzzer runtimes
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22 lld-22 liblld-22-dev libclang-rt-22-dev
  # what LLVM's CMake files look for (zlib: the runtime, too)
  zlib1g-dev libzstd-dev libxml2-dev libncurses-dev
  # building
  cmake ninja-build ccache pkg-config git ca-certificates
  # libraries
  nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev libxxhash-dev libboost1.81-dev libssl-dev
  # tests (QEMU runs executables for AArch64)
  qemu-user libgtest-dev python3 python3-venv python3-pip python3-numpy python3-xxhash
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#packages[@]} are installed"
  install_ptxas
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
install_ptxas
