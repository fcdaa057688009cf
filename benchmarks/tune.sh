#!/usr/bin/env bash
# The table of measured tiles that schedules of products on a GPU are chosen by (lib/Conversion/LMToTile/MeasuredH200.inc):
#   benchmarks/tune.sh kit KIT                  here: compiles every shape with every tile; needs a built llmc, no GPU
#   KIT/tune.sh run KIT --out times.json        on the GPU machine: needs python3, nothing else; about 6 minutes
#   benchmarks/tune.sh table times.json         here: writes the table; then build llmc anew
# Shapes: the products of Llama-3.2-1B, Llama-3.1-8B and a shard of Llama-3.1-70B in eight (scripts/make-op-shapes.py).
set -euo pipefail
exec python3 -B "$(dirname "$(realpath "$0")")/device/tune.py" "$@"
