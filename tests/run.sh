#!/usr/bin/env bash
# Set-up, then every check: lint, unit, privacy, layout, shell and recipe tests.
#
# Usage: tests/run.sh [--fast true] [--only NAME]
#
# All parts run, whatever fails before them, the recipes beside the others; exit 1 if one did. Names for --only:
# shell-lint ruff types unit privacy layout shell recipes.

set -euo pipefail

fast=false # leave out tests marked slow
only=      # one part, by its name
setup=true # false: trust the programs and the python that are on PATH

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"
if [ $# -gt 0 ]; then
  _misuse "unexpected argument '$1'"
fi
cd "$root"

if [ "$setup" = true ]; then
  tools/setup.sh --for tests
  export PATH="${DPANON_VENV:-$root/.venv}/bin:$PATH"
fi
export DPANON_SETUP=false # what the tests call has nothing to install
# one thread: recipes run jobs side by side, and threads that wait for each other spin
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE=1
marks=()
if [ "$fast" = true ]; then
  marks=(-m "not slow")
fi
beside=$(mktemp) # what the longest part says, which runs beside the others
finish() {
  if [ -n "$(jobs -pr)" ]; then # stopped before its end
    # shellcheck disable=SC2046  # numbers
    kill $(jobs -pr)
  fi
  rm -f "$beside"
}
trap finish EXIT
names=()
results=()
failed=0
passed=0

part() { # name, command ...
  local name=$1 began=$SECONDS status=0 verdict
  shift
  names+=("$name")
  if [ -n "$only" ] && [ "$only" != "$name" ]; then
    return
  fi
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  if [ "$status" -eq 0 ]; then
    verdict=passed
    passed=$((passed + 1))
  else
    verdict="FAILED (exit code $status)"
    failed=$((failed + 1))
  fi
  results+=("$(printf '%-12s %-22s %4d s' "$name" "$verdict" $((SECONDS - began)))")
}

shell_lint() {
  local files status=0
  mapfile -t files < <(tools/shell_files.sh)
  shellcheck "${files[@]}" || status=1
  shfmt -i 2 -ci -d "${files[@]}" || status=1
  echo "${#files[@]} shell scripts"
  return "$status"
}

ruff_lint() {
  local status=0
  ruff check . || status=1
  ruff format --check . || status=1
  return "$status"
}

tests_of() { # path: pytest on it; no test at all is a failure
  python -m pytest -q --durations=5 ${marks[@]+"${marks[@]}"} "$1"
}

shell_tests() {
  bats tests/shell
}

recipes() { # what was begun at the start, or now if it is all that is asked for
  local status=0
  if [ -n "$only" ]; then
    tests_of tests/test_recipes.py
    return
  fi
  wait "$recipes" || status=$?
  cat "$beside"
  return "$status"
}

if [ -z "$only" ]; then
  tests_of tests/test_recipes.py >"$beside" 2>&1 &
  recipes=$!
fi
part shell-lint shell_lint
part ruff ruff_lint
part types mypy
part unit tests_of tests/unit
part privacy tests_of tests/privacy
part layout tests_of tests/test_layout.py
part shell shell_tests
part recipes recipes

if [ -n "$only" ] && [ ${#results[@]} -eq 0 ]; then
  _misuse "--only $only is not one of: ${names[*]}"
fi
printf '\n== summary\n'
printf '%s\n' "${results[@]}" "" "parts: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
