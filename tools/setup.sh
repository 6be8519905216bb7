#!/usr/bin/env bash
# Makes the virtual environment .venv with asrtrain and all it needs, once.
#
#   tools/setup.sh            create or complete .venv; does nothing if it is up to date
#
# Needs Python 3.11 to 3.13 (PYTHON=/path/to/python chooses one) and a package index that pip knows.
# No root. Versions are those of tools/constraints.txt, which the tests have run with.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=$(cat pyproject.toml tools/constraints.txt | sha256sum)
stamp=.venv/asrtrain-setup
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then
  exit 0
fi

python=${PYTHON:-}
for candidate in python3.11 python3.12 python3.13 python3; do
  [ -n "$python" ] && break
  if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
    python=$candidate
  fi
done
if [ -z "$python" ]; then
  echo "tools/setup.sh: no Python 3.11 to 3.13 on the PATH; install one, or set PYTHON=/path/to/python" >&2
  exit 1
fi

log=.venv/setup.log
echo "setup: making .venv with $("$python" --version) (about 2 minutes and 6 GB; log in $log)" >&2
"$python" -m venv .venv
if ! .venv/bin/python -m pip install --disable-pip-version-check \
  --constraint tools/constraints.txt --editable '.[dev,report]' >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "tools/setup.sh: installation failed; the whole log is in $log" >&2
  exit 1
fi
echo "$wanted" >"$stamp"
echo "setup: .venv is ready" >&2
