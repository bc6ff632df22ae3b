#!/usr/bin/env bats

load helpers

setup() {
  scratch_recipe
  cat >script.sh <<'END'
#!/usr/bin/env bash
# What the script does.
#
# Usage: script.sh [options] <in> <out>

set -euo pipefail

nj=4 # parallel jobs
epsilon_bn=1.0 # of one frame
resume=false
cmd="utils/run.py --max-jobs 2"
root=$(pwd) # computed
. utils/parse_options.sh
later=1
printf '%s|' "$nj" "$epsilon_bn" "$resume" "$cmd" "$@"
END
  chmod +x script.sh
}

@test "options are set, arguments are left" {
  run ./script.sh --nj 7 --epsilon-bn=0.5 --cmd "a b  c" in "out put"
  [ "$status" -eq 0 ]
  [ "$output" = "7|0.5|false|a b  c|in|out put|" ]
}

@test "an unknown option is an error with a suggestion" {
  run ./script.sh --epsilon-bm 3 in out
  [ "$status" -eq 2 ]
  [[ $output == *"unknown option --epsilon-bm; did you mean --epsilon-bn?"* ]]
}

@test "a variable of the environment, or set later, is no option" {
  for name in path home later lc-all root; do
    run env later=1 path=x ./script.sh "--$name" 3
    [ "$status" -eq 2 ]
    [[ $output == *"unknown option --$name"* ]]
  done
}

@test "a name that cannot be a variable is an error" {
  run ./script.sh '--nj[$(touch hit)]' 3
  [ "$status" -eq 2 ]
  [ ! -e hit ]
  run ./script.sh '--nj[$(touch hit)]=3'
  [ "$status" -eq 2 ]
  [ ! -e hit ]
}

@test "a boolean takes true or false" {
  run ./script.sh --resume yes
  [ "$status" -eq 2 ]
  [[ $output == *"--resume takes true or false, not 'yes'"* ]]
  run ./script.sh --resume true
  [ "$status" -eq 0 ]
}

@test "a number of jobs is a number" {
  run ./script.sh --nj four
  [ "$status" -eq 2 ]
}

@test "a missing value is an error, not the next option" {
  run ./script.sh --nj --resume true
  [ "$status" -eq 2 ]
  [[ $output == *"--nj needs a value"* ]]
  run ./script.sh --nj
  [ "$status" -eq 2 ]
}

@test "an option after an argument is an error, unless -- comes first" {
  run ./script.sh in --nj 3
  [ "$status" -eq 2 ]
  [[ $output == *"--nj comes after 'in'"* ]]
  run ./script.sh -- --nj 3
  [ "$status" -eq 0 ]
  [ "$output" = "4|1.0|false|utils/run.py --max-jobs 2|--nj|3|" ]
}

@test "a value is never run" {
  run ./script.sh --cmd '$(touch hit)`touch hit`'
  [ "$status" -eq 0 ]
  [ ! -e hit ]
}

@test "help is the header and the options" {
  run ./script.sh --help
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "What the script does." ]
  [[ $output == *"--epsilon-bn 1.0"*"of one frame"* ]]
  [[ $output != *"#!"* ]]
}
