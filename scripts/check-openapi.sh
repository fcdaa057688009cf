#!/usr/bin/env bash
# Holds a server against its own /openapi.json: schemathesis (PyPI) makes requests that the file allows and ones that it forbids, and
# checks every answer. Exit code 1 for a 5xx, an answer that the file does not have, a good request refused or a bad one answered.
# Usage: scripts/check-openapi.sh EXE [REQUESTS_PER_ROUTE [SEED]]     (default: 200, 1; some minutes on a small model)
set -euo pipefail
exe=${1:?usage: check-openapi.sh EXE [REQUESTS_PER_ROUTE [SEED]]}
here=$(cd "$(dirname "$0")" && pwd)
dir=$here/../models/schemathesis
if ! "$dir/bin/st" --version >/dev/null 2>&1; then
  echo "fetching schemathesis (PyPI, 100 MB)" >&2
  rm -rf "$dir"
  mkdir -p "$(dirname "$dir")"
  python3 -m venv "$dir" >&2
  "$dir/bin/pip" -q --disable-pip-version-check install schemathesis==4.32.5 >&2
fi

scratch=$(mktemp -d)
# Answers without a bound end with the context: a short one keeps them short.
"$exe" serve --port 0 --model-name checked --batch-dir "$scratch/batches" --context 128 >"$scratch/out" &
server=$!
trap 'kill $server 2>/dev/null; wait $server; rm -rf "$scratch"' EXIT
until grep -q ' on http' "$scratch/out"; do
  kill -0 $server || { echo "check-openapi.sh: expected a server, got its end" >&2; exit 1; }
  sleep 0.1
done
url=$(sed 's/.* on //' "$scratch/out")
cd "$scratch" # for what schemathesis leaves behind
"$dir/bin/st" --config-file "$here/schemathesis.toml" run "$url/openapi.json" --max-examples "${2:-200}" --seed "${3:-1}" \
  --phases examples,coverage,fuzzing --continue-on-failure --request-timeout 300
