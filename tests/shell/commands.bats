#!/usr/bin/env bats
# What every command a person types has in common.

load helpers

setup() {
  cd "$repository" || return 1
  unset DPANON_SETUP
}

commands() {
  local file
  for file in steps/*.sh local/*/*.sh tools/*.sh tests/run.sh egs/*/*/run.sh; do
    if [ -f "$file" ] && [ -x "$file" ]; then
      echo "$file"
    fi
  done
}

# A step is called from a recipe, where utils is a link.
from_a_recipe() {
  scratch_recipe
  ln -s "$repository/local" "$recipe/"
}

@test "--help of every command is its header, and quick" {
  from_a_recipe
  for command in $(cd "$repository" && commands); do
    run timeout 60 "$repository/$command" --help
    echo "$command: $status: $output"
    [ "$status" -eq 0 ]
    [[ $output == *"Usage: "* ]]
  done
}

@test "every command refuses an option it does not know" {
  from_a_recipe
  for command in $(cd "$repository" && commands); do
    run timeout 60 "$repository/$command" --no-such-option 3
    echo "$command: $status: $output"
    [ "$status" -eq 2 ]
    [[ $output == *"unknown option --no-such-option"* ]]
  done
}

@test "tests/run.sh refuses a part that is none" {
  run tests/run.sh --setup false --only unitt
  [ "$status" -eq 2 ]
  [[ $output == *"--only unitt is not one of: shell-lint ruff"* ]]
}

@test "tools/setup.sh names the line to type when a program is missing and apt is not" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  for program in bash env dirname cat sha256sum id grep python3 sox flac flite; do
    ln -s "$(command -v "$program")" "$BATS_TEST_TMPDIR/bin/"
  done
  PATH="$BATS_TEST_TMPDIR/bin" DPANON_VENV="$BATS_TEST_TMPDIR/venv" run tools/setup.sh
  [ "$status" -eq 1 ]
  [[ ${lines[-1]} == "  sudo apt-get install -y --no-install-recommends espeak-ng" ]]
  [ ! -e "$BATS_TEST_TMPDIR/venv" ]
}

@test "tools/setup.sh does nothing when all is there" {
  mkdir -p "$BATS_TEST_TMPDIR/venv"
  { cat tools/constraints/*.txt pyproject.toml tools/setup.sh | sha256sum; echo "$repository"; } \
    >"$BATS_TEST_TMPDIR/venv/set-up.mini"
  DPANON_VENV="$BATS_TEST_TMPDIR/venv" run tools/setup.sh
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  [ ! -e "$BATS_TEST_TMPDIR/venv/bin" ]
}
