#!/usr/bin/env bash
# The page of `serve` in a real browser: chats, stops, asks for the key and watches the metrics in headless Chromium (Debian's
# `chromium`, 500 MB with what it needs, which is why ./test.sh does without), driven by playwright (PyPI). One line a check; exit
# code 1 if one fails. With DIR it leaves screenshots there, light and dark (docs/images is made so).
# Usage: scripts/check-page.sh EXE [DIR]     (EXE: a small chat model, such as SmolLM2; install Chromium with apt-get install chromium)
set -euo pipefail
exe=${1:?usage: check-page.sh EXE [DIR]}
here=$(cd "$(dirname "$0")" && pwd)
command -v chromium >/dev/null || { echo "check-page.sh: expected chromium, got none; apt-get install chromium" >&2; exit 1; }
dir=$here/../models/playwright
client=playwright==1.65.2
if ! "$dir/bin/python" -c 'import playwright' 2>/dev/null; then
  echo "fetching $client (PyPI, 50 MB)" >&2
  rm -rf "$dir"
  mkdir -p "$(dirname "$dir")"
  python3 -m venv "$dir" >&2
  "$dir/bin/pip" -q --disable-pip-version-check install "$client" >&2
fi
exec "$dir/bin/python" -B "$here/../test/EndToEnd/page.py" "$exe" "$(command -v chromium)" "${2:-}"
