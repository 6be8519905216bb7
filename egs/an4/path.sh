# Sourced by run.sh: the project's own commands first on the PATH, one byte order for all sorting.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PATH="$root/.venv/bin:$PATH"
export LC_ALL=C
