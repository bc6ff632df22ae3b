#!/usr/bin/env bash
# Options of a script: `--some-name value` sets its variable `some_name`.
#
#   nj=4           # parallel jobs
#   . utils/parse_options.sh
#
# An option is a lower-case variable that the script sets, at the start of a line, above the line that
# sources this file; one with $(...) in it is computed and no option. Its default and the comment after
# it are its help. A variable whose default is true or false takes only these. Options come before
# arguments; `--` ends them. Exit 2 for misuse.

_script=${BASH_SOURCE[1]:-$0}
[ -r "$_script" ] || _script=${_script##*/} # it went to its own folder, and its name was relative to another one
# shellcheck disable=SC2034  # read by stages.sh
_given=("$@")

_misuse() {
  echo "$0: $1 (see $0 --help)" >&2
  exit 2
}

_read_options() {
  local line
  _options=()
  _option_help=()
  while IFS= read -r line; do
    [[ $line =~ parse_options\.sh ]] && [[ ! $line =~ ^\# ]] && return
    if [[ $line != *"\$("* && $line =~ ^([a-z][a-z0-9_]*)=([^#]*)(#[[:space:]]*(.*))?$ ]]; then
      _options+=("${BASH_REMATCH[1]}")
      _option_help+=("$(printf -- '  --%-20s %s' "${BASH_REMATCH[1]//_/-} ${BASH_REMATCH[2]%% }" "${BASH_REMATCH[4]}")")
    fi
  done <"$_script"
}

_print_help() {
  local line
  {
    read -r line # the interpreter
    while IFS= read -r line && [[ $line == \#* ]]; do
      line=${line#\#}
      printf '%s\n' "${line# }"
    done
  } <"$_script"
  if [ ${#_options[@]} -gt 0 ]; then
    printf '\nOptions, with their defaults:\n'
    printf '%s\n' "${_option_help[@]}"
  fi
}

_require_known() { # name as typed, without --
  local name nearest=''
  for name in "${_options[@]}"; do
    if [ "$name" = "${1//-/_}" ]; then
      return
    fi
  done
  if command -v python3 >/dev/null; then
    nearest=$(python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1], sys.argv[2:], 1))' \
      "${1//-/_}" "${_options[@]}")
  fi
  _misuse "unknown option --$1${nearest:+; did you mean --${nearest//_/-}?}"
}

_set_option() { # name as in the variable, value
  case ${!1-} in
    true | false)
      case $2 in
        true | false) ;;
        *) _misuse "--${1//_/-} takes true or false, not '$2'" ;;
      esac
      ;;
  esac
  case $1 in
    stage | stop_stage | nj)
      [[ $2 =~ ^[0-9]+$ ]] || _misuse "--${1//_/-} takes a whole number, not '$2'"
      ;;
  esac
  printf -v "$1" '%s' "$2"
}

_read_options
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h)
      _print_help
      exit 0
      ;;
    --)
      shift
      break
      ;;
    --*=*)
      _name=${1%%=*}
      _name=${_name#--}
      _require_known "$_name"
      _set_option "${_name//-/_}" "${1#*=}"
      shift
      ;;
    --*)
      _require_known "${1#--}"
      if [ $# -lt 2 ] || [[ $2 == --* ]]; then
        _misuse "$1 needs a value"
      fi
      _name=${1#--}
      _set_option "${_name//-/_}" "$2"
      shift 2
      ;;
    -?*) _misuse "unknown option $1" ;;
    *)
      for _argument in "$@"; do
        [[ $_argument != --* ]] || _misuse "$_argument comes after '$1': options come first"
      done
      break
      ;;
  esac
done
unset _name _argument
