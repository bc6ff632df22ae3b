#!/usr/bin/env bats

load helpers

setup() {
  scratch_recipe
  mkdir -p conf data
  echo "lr: 1" >conf/a.yaml
  echo "u1 one.wav" >data/wav.scp
  cat >step.sh <<'END'
#!/usr/bin/env bash
# A step.
set -euo pipefail
config=conf/a.yaml
epsilon=1.0
fail=false
. utils/parse_options.sh
. utils/stamps.sh
out=exp/a
if already_done "$out" config="$config" wav=data/wav.scp epsilon="$epsilon"; then
  exit 0
fi
echo working
[ "$fail" = false ]
echo made >exp/made
mark_done "$out" exp/made
END
  chmod +x step.sh
}

@test "done with the same inputs is skipped" {
  run ./step.sh
  [ "$status" -eq 0 ]
  [ "$output" = working ]
  run ./step.sh
  [ "$status" -eq 0 ]
  [[ $output == *"done before"* && $output != *working* ]]
}

@test "other inputs stop the step and are named" {
  ./step.sh
  run ./step.sh --epsilon 2
  [ "$status" -eq 3 ]
  [[ $output == *"epsilon was '1.0', is '2'"* && $output != *working* ]]
  echo "lr: 2" >conf/a.yaml
  run ./step.sh
  [ "$status" -eq 3 ]
  [[ $output == *"exp/a was made from other inputs: config was"* ]]
}

@test "an interrupted step resumes, but not with other inputs" {
  run ./step.sh --fail true
  [ "$status" -eq 1 ]
  run ./step.sh --epsilon 2
  [ "$status" -eq 3 ]
  [[ $output == *"exp/a was begun from other inputs: epsilon"* ]]
  run ./step.sh
  [ "$status" -eq 0 ]
  [ "$output" = working ]
}

@test "an output that was lost or changed is noticed" {
  ./step.sh
  echo other >exp/made
  run ./step.sh
  [ "$status" -eq 3 ]
  rm exp/made
  run ./step.sh
  [ "$status" -eq 3 ]
  [[ $output == *"exp/made is gone"* ]]
}

@test "a missing input is an error, not a value" {
  run ./step.sh --config conf/none.yaml
  [ "$status" -eq 1 ]
  [[ $output == *"config: conf/none.yaml does not exist"* ]]
  [ ! -e exp/a ]
}

@test "a promised output must be there" {
  run utils/stamp.py check exp/b x=1
  [ "$status" -eq 10 ]
  run utils/stamp.py mark exp/b exp/nothing
  [ "$status" -eq 1 ]
  [ ! -e exp/b/stamp.json ]
}

@test "a directory counts with the files in it, not with its logs" {
  run utils/stamp.py check exp/c data=data
  run utils/stamp.py mark exp/c
  echo noise >data/x.log
  run utils/stamp.py check exp/c data=data
  [ "$status" -eq 0 ]
  echo "u2 two.wav" >>data/wav.scp
  run utils/stamp.py check exp/c data=data
  [ "$status" -eq 3 ]
}
