#!/usr/bin/env bash
# Runs what CI runs before the recipes: style, types, layers, then the tests.
#
#   tools/test.sh                   the fast tests
#   tools/test.sh --slow            the slow ones as well
#   tools/test.sh tests/onebit ...  anything else goes to pytest
#
# Tests on real speech need ASRTRAIN_TEST_DATA=DIR (a folder with an4/ and fsdd/), else they skip.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh

markers=()
if [ "${1:-}" = --slow ]; then
  markers=(-m 'not gpu and not netlab')
  shift
fi

.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
.venv/bin/lint-imports --no-cache
# Two workers at most: the tests start processes of their own.
.venv/bin/pytest -n 2 -ra "${markers[@]}" "$@"
