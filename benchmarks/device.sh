#!/usr/bin/env bash
# The one script to run on a machine with a GPU: conformance, numerics, then benchmarks, with a kit of scripts/make-device-kit.sh.
#   device.sh KIT [--out DIR] [--only GROUP,...] [--seconds-budget N]
#   device.sh --merge OUT.json IN.json...          several runs as one, with the ratios between their figures
# KIT has part-1, part-2 and so on. Groups: smoke, conformance, numerics, errors, memory, sanitizer, bench, peer, ops, steps-8b,
# steps-1b, trace-8b, serve-8b (all).
# Needs python3 with numpy, for the peer torch. Every step has a timeout, and none stops the others. Writes DIR/device.json and
# DIR/device.log (DIR: device-out); the last line on standard output is a summary as one JSON object. Exit 1: something failed.
set -euo pipefail
exec python3 -B "$(dirname "$(realpath "$0")")/device/main.py" "$@"
