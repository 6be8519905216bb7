# Sourced by every run.sh and step: `--name value` sets the variable $name (dashes as underscores),
# which must have a default already; `key=value` goes to the array $overrides; --help prints $usage.
#
#   nj=2
#   usage="usage: $0 [--nj N] [key=value ...]"
#   . recipes/utils/parse_options.sh

overrides=()
positional=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help)
      echo "$usage"
      exit 0
      ;;
    --*)
      name=${1#--}
      name=${name//-/_}
      if ! [[ $name =~ ^[a-z_]+$ ]] || [ -z "${!name+set}" ]; then
        echo "$0: error: no option '$1'; --help lists them" >&2
        exit 1
      fi
      if [ $# -lt 2 ]; then
        echo "$0: error: option '$1' needs a value" >&2
        exit 1
      fi
      printf -v "$name" '%s' "$2"
      shift 2
      ;;
    *=*)
      overrides+=("$1")
      shift
      ;;
    *)
      positional+=("$1")
      shift
      ;;
  esac
done
