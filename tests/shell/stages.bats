#!/usr/bin/env bats

load helpers

setup() {
  scratch_recipe
  cat >run.sh <<'END'
#!/usr/bin/env bash
# A recipe.

set -euo pipefail

stage=0
stop_stage=2
list=false
epsilon=1.0
fail=none
. utils/parse_options.sh
. utils/stages.sh

if at_stage 0 "data"; then
  echo zero
fi
if at_stage 1 "train with $epsilon"; then
  if [ "$fail" = command ]; then (exit 7); fi
  if [ "$fail" = exit ]; then exit 3; fi
  echo one
fi
if at_stage 2 "report"; then
  echo two
fi
END
  chmod +x run.sh
}

@test "all stages run, in order" {
  run ./run.sh
  [ "$status" -eq 0 ]
  [[ $output == *"stage 0: data"*zero*"stage 1: train with 1.0"*one*"stage 2: report"*two*"stage 2 took"* ]]
}

@test "--stage and --stop-stage choose" {
  run ./run.sh --stage 1 --stop-stage 1
  [ "$status" -eq 0 ]
  [[ $output == *one* && $output != *zero* && $output != *two* ]]
}

@test "--list true prints the story and runs nothing" {
  run ./run.sh --list true --epsilon 4
  [ "$status" -eq 0 ]
  [ "$output" = "  0  data
  1  train with 4
  2  report" ]
}

@test "a mistyped option stops the recipe before any stage" {
  run ./run.sh --stge 1
  [ "$status" -eq 2 ]
  [[ $output == *"unknown option --stge; did you mean --stage?"* ]]
  [[ $output != *zero* ]]
}

@test "stages that cannot be meant are errors" {
  run ./run.sh --stage 2 --stop-stage 1
  [ "$status" -eq 2 ]
  run ./run.sh stage 2
  [ "$status" -eq 2 ]
  [[ $output == *"unexpected argument 'stage'"* ]]
}

@test "a failing command ends with the line that resumes, options kept" {
  run ./run.sh --stage 0 --epsilon 4 --fail command
  [ "$status" -eq 7 ]
  [[ ${lines[-1]} == *"stage 1 failed (exit code 7); mend it, then: ./run.sh --epsilon 4 --fail command --stage 1" ]]
  [[ $output != *two* ]]
}

@test "an exit inside a stage does so too" {
  run ./run.sh --fail exit
  [ "$status" -eq 3 ]
  [[ ${lines[-1]} == *"--fail exit --stage 1" ]]
}

@test "no stage at all is said" {
  run ./run.sh --stage 5 --stop-stage 9
  [ "$status" -eq 0 ]
  [[ $output == *"no stage from 5 to 9"* ]]
}
