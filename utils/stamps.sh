#!/usr/bin/env bash
# Stamps of a step, which make a rerun safe. To be sourced; see utils/stamp.py for what is compared.
#
#   if already_done "$out" config="$config" wav="$data/wav.scp" epsilon="$epsilon"; then
#     exit 0
#   fi
#   ...
#   mark_done "$out" "$data/f0.scp"
#
# Done with the same inputs: true. Done, or begun, with other inputs: exit 3 with the input's name.

_stamp=${BASH_SOURCE[0]%/*}/stamp.py

already_done() { # directory, name=input ...
  local status=0
  python3 "$_stamp" check "$@" || status=$?
  case $status in
    0) return 0 ;;
    10) return 1 ;;
    *) exit "$status" ;;
  esac
}

mark_done() { # directory, outputs to be there when it is asked again ...
  python3 "$_stamp" mark "$@"
}
