#!/usr/bin/env bats

load helpers

setup() {
  scratch_recipe
}

@test "done and begun steps, metrics, and the log that failed" {
  run utils/stamp.py check exp/a epsilon=1
  run utils/stamp.py mark exp/a
  run utils/stamp.py check exp/b epsilon=2
  run utils/run.py JOB=1:2 exp/b/JOB/log test JOB = 1
  echo '{"system": "dp", "eer": 0.31251, "scores": [1]}' >exp/a/metrics.json
  run utils/show_exp.py exp
  [ "$status" -eq 0 ]
  [[ ${lines[0]} == *"exp/a  system=dp eer=0.3125" ]]
  [[ ${lines[1]} == "done "*"exp/a  epsilon=1" ]]
  [[ ${lines[2]} == "begun "*"exp/b  epsilon=2" ]]
  [[ ${lines[3]} == *"see exp/b/2/log" ]]
  [ ${#lines[@]} -eq 4 ]
}

@test "a directory that is not there is an error" {
  run utils/show_exp.py nothing
  [ "$status" -eq 1 ]
}
