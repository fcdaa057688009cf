#!/usr/bin/env bash
# Runs an executable of llmc for AArch64 on this machine, emulated by QEMU. Usage: scripts/run-aarch64.sh EXE [ARGUMENT...]
# Environment: LLMC_SYSROOT (~/.cache/llmc/sysroot-aarch64; made by scripts/build-aarch64.sh), LLMC_QEMU_CPU (max).
set -euo pipefail
sysroot=${LLMC_SYSROOT:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/llmc/sysroot-aarch64}
[ -e "$sysroot/lib/ld-linux-aarch64.so.1" ] || { echo "run-aarch64.sh: expected AArch64's C library in $sysroot, got none; run scripts/build-aarch64.sh" >&2; exit 1; }
exec qemu-aarch64 -L "$sysroot" -cpu "${LLMC_QEMU_CPU:-max}" "$@"
