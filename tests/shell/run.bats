#!/usr/bin/env bats

load helpers

setup() {
  scratch_recipe
}

@test "a log begins with the command and ends with the exit code" {
  run utils/run.py exp/log echo "two words" '$HOME;'
  [ "$status" -eq 0 ]
  [ "$(head -1 exp/log)" = "# echo 'two words' '\$HOME;'" ]
  [ "$(sed -n 2p exp/log)" = 'two words $HOME;' ]
  [[ $(tail -1 exp/log) == "# exit code 0, "* ]]
}

@test "JOB is replaced in the log and the command" {
  run utils/run.py JOB=1:3 exp/JOB/log echo shard/JOB.scp
  [ "$status" -eq 0 ]
  for job in 1 2 3; do
    grep -qx "shard/$job.scp" "exp/$job/log"
  done
  [ ! -e exp/4 ]
}

@test "a failing job shows the end of its log and which of how many" {
  run utils/run.py JOB=1:4 exp/log.JOB bash -c 'echo says JOB; exit $((JOB == 3 ? 5 : 0))'
  [ "$status" -eq 5 ]
  [[ $output == *"1 of 4 jobs failed; the end of exp/log.3:"*"says 3"*"exit code 5"* ]]
  [[ $output != *"says 2"* ]]
}

@test "--pick incomplete leaves out what is done by the same command" {
  run utils/run.py JOB=1:3 exp/log.JOB bash -c '{ test JOB != 2 || test -e mended; } && echo JOB >>ran'
  [ "$status" -eq 1 ]
  touch mended
  rm ran
  run utils/run.py --pick incomplete JOB=1:3 exp/log.JOB bash -c '{ test JOB != 2 || test -e mended; } && echo JOB >>ran'
  [ "$status" -eq 0 ]
  [ "$(cat ran)" = 2 ]
  run utils/run.py --pick incomplete JOB=1:3 exp/log.JOB bash -c 'echo other JOB >>ran'
  [ "$(grep -c other ran)" -eq 3 ]
}

@test "--max-jobs bounds what runs at once" {
  run utils/run.py --max-jobs 1 JOB=1:3 exp/log.JOB bash -c 'mkdir lock && sleep 0.1 && rmdir lock'
  [ "$status" -eq 0 ]
}

@test "a command that does not exist is a failed job" {
  run utils/run.py exp/log no-such-command
  [ "$status" -eq 1 ]
  [[ $output == *"1 of 1 jobs failed"*"no-such-command"* ]]
}

@test "jobs do not outlive a launcher that is told to stop" {
  utils/run.py exp/log sleep 47 &
  launcher=$!
  for _ in $(seq 100); do [ -s exp/log ] && break || sleep 0.05; done
  sleep 0.3
  kill "$launcher"
  run wait "$launcher"
  [[ $(tail -1 exp/log) == "# exit code -15, "* ]]
}

@test "misuse is exit 2" {
  for arguments in "" "log" "--pick some log true" "--max-jobs 0 log true" "JOB=1:2 log true" "JOB=3:2 l.JOB true" "--what 1 log true"; do
    # shellcheck disable=SC2086  # words
    run utils/run.py $arguments
    [ "$status" -eq 2 ]
  done
}

@test "slurm.py says when there is no Slurm" {
  command -v sbatch >/dev/null && skip "there is one"
  run utils/slurm.py --gpu 1 JOB=1:2 exp/log.JOB echo JOB
  [ "$status" -eq 1 ]
  [[ $output == *"there is no sbatch on this machine"* ]]
}

@test "slurm.py submits an array that runs the same jobs" {
  mkdir bin
  cat >bin/sbatch <<'END'
#!/usr/bin/env bash
# A queue of one: runs the tasks of the array at once.
echo "$*" >sbatch.arguments
for argument in "$@"; do
  case $argument in
    --array=*) tasks=${argument#--array=} ;;
  esac
  script=$argument
done
for task in ${tasks//,/ }; do
  SLURM_ARRAY_TASK_ID=$task bash "$script" || true
done
END
  chmod +x bin/sbatch
  PATH="$PWD/bin:$PATH" run utils/slurm.py --gpu 1 --mem 8G JOB=1:3 "exp/a log.JOB" bash -c 'echo "it is JOB"; test JOB != 2'
  [ "$status" -eq 1 ]
  [[ $output == *"1 of 3 jobs failed; the end of exp/a log.2:"* ]]
  grep -qx "it is 3" "exp/a log.3"
  grep -q -- "--wait --parsable --array=1,2,3 .*--mem=8G --gres=gpu:1" sbatch.arguments
}
