#!/usr/bin/env bash
# Private speech -> public recogniser of digits: no DP, DP-SGD, PATE and PSN at one exact epsilon (paper D), in minutes.
#
#   private -> parts -> teachers --noise--> labels of public speech -> students -> error
#
# With no --corpus all speech is made by flite and espeak-ng. README.md beside this file explains the stages.
#
# Usage: ./run.sh [--corpus DIR] [--stage N] [--stop-stage N] [--epsilon E] [--nj N] ...
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                                                      # first stage to run
stop_stage=7                                                 # last stage to run
list=false                                                   # only print the stages
nj=2                                                         # parallel jobs
corpus=                                                      # folder of the Free Spoken Digit Dataset (or one in its layout); empty: made speech
made=corpora/digits                                          # where speech is made
systems="gnmax confident gaussian laplace psn psn-published" # besides start, nodp and dpsgd; some of these
teachers="50 20 10"                                          # numbers; the first is everybody's, the others are for gnmax: error against teachers
epsilon=8                                                    # of one unit, exact, of each system (psn-published: by its formula)
delta=1e-5
unit=utterance # what is protected: utterance or speaker
cap=           # most teachers of PSN that may hear one speaker; empty: all
dpsgd=true     # false: leave out DP-SGD, which needs Opacus (and unit utterance)
students=3     # in an ensemble
. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/stages.sh

for name in $systems; do
  case $name in
    gnmax | confident | gaussian | laplace | psn | psn-published) ;;
    *) _misuse "--systems takes some of gnmax, confident, gaussian, laplace, psn and psn-published, not '$name'" ;;
  esac
done
if [ "$unit" != utterance ] && [ "$dpsgd" = true ]; then
  _misuse "--unit $unit: DP-SGD here protects an utterance; add --dpsgd false"
fi
most=${teachers%% *} # everybody's
declare -A folder    # system -> its teachers
declare -A method
add() { # system, its method, folder of its teachers
  method[$1_eps$epsilon]=$2
  folder[$1_eps$epsilon]=$3
}
for name in $systems; do
  case $name in
    psn*) add "${name}_t$most" "$name" "exp/teachers_${name}_t$most" ;; # they answer once: each has its own
    *) add "${name}_t$most" "$name" "exp/teachers_t$most" ;;
  esac
done
if [[ " $systems " == *" gnmax "* ]]; then
  for number in ${teachers#"$most"}; do
    add "gnmax_t$number" gnmax "exp/teachers_t$number"
  done
fi
mapfile -t asked < <(printf '%s\n' "${!folder[@]}" | sort)
private=("${asked[@]}") # systems with a claim
if [ "$dpsgd" = true ]; then
  private+=("dpsgd_eps$epsilon")
fi
words=local/digits/words.txt
title="digits, made speech"
if [ -n "$corpus" ]; then
  title="digits of the Free Spoken Digit Dataset"
fi
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing
if [ "$list" = false ]; then
  "$DPANON_ROOT/tools/setup.sh" --for mini
fi

if at_stage 0 "data: made digits, and FSDD or more of them -> data/{start,private,public,test,test_speakers}"; then
  local/digits/prepare.sh --nj "$nj" --corpus "$corpus" "$made" data
fi

if at_stage 1 "features: data/<set> -> fbank.scp"; then
  for set in start private public test test_speakers; do
    steps/extract_fbank.sh --nj "$nj" --cmd "$cpu_cmd" "data/$set"
  done
fi

if at_stage 2 "teachers: public models -> exp/{start,public}; parts of data/private -> exp/teachers_*; no DP -> exp/nodp"; then
  steps/train_commands.sh --cmd "$gpu_cmd" --baseline true conf/start.yaml "$words" data/start exp/start
  steps/train_commands.sh --cmd "$gpu_cmd" --baseline true --start exp/start --public data/public \
    conf/public.yaml "$words" data/start exp/public
  steps/train_commands.sh --cmd "$gpu_cmd" --baseline true --start exp/public conf/nodp.yaml "$words" data/private exp/nodp
  for dir in $(printf '%s\n' "${folder[@]}" | sort -u); do
    case $dir in
      *_psn*) steps/partition_data.sh --number "$most" --unit "$unit" --rate "1/$most" --cap "$cap" data/private "$dir" ;;
      *) steps/partition_data.sh --number "${dir##*_t}" --unit "$unit" data/private "$dir" ;;
    esac
    steps/train_teachers.sh --nj "$nj" --cmd "$gpu_cmd" conf/teacher.yaml exp/public data/private "$dir"
  done
fi

if at_stage 3 "public models: those that teachers began with (stage 2); nothing else"; then
  log "there is no private speech in exp/start and exp/public"
fi

if at_stage 4 "release: answers of teachers -> data/public_<system>; their students and DP-SGD -> exp/<system>"; then
  for name in "${asked[@]}"; do
    steps/release_labels.sh --cmd "$cpu_cmd" --method "${method[$name]}" --epsilon "$epsilon" --delta "$delta" \
      --system "$name" conf/queries.yaml "${folder[$name]}" data/private data/public "data/public_$name"
    steps/train_commands.sh --cmd "$gpu_cmd" --start exp/public --private data/private --public data/public \
      --students "$students" conf/student.yaml "$words" "data/public_$name" "exp/$name"
  done
  if [ "$dpsgd" = true ]; then
    steps/train_dpsgd.sh --cmd "$gpu_cmd" --epsilon "$epsilon" --delta "$delta" --start exp/public \
      conf/dpsgd.yaml "$words" data/private "exp/dpsgd_eps$epsilon"
  fi
fi

if at_stage 5 "attack: membership in data/private, seen in the published models -> AUC"; then
  steps/score_membership.sh --cmd "$cpu_cmd" --baseline true exp/nodp data/private data/test
  for name in "${private[@]}"; do
    steps/score_membership.sh --cmd "$cpu_cmd" "exp/$name" data/private data/test
  done
fi

if at_stage 6 "utility: data/test, data/test_speakers -> errors of every system"; then
  for name in start public nodp; do
    steps/score_commands.sh --cmd "$cpu_cmd" --baseline true "exp/$name" data/test data/test_speakers
  done
  for name in "${private[@]}"; do
    steps/score_commands.sh --cmd "$cpu_cmd" "exp/$name" data/test data/test_speakers
  done
fi

if at_stage 7 "report: figures of all systems -> results/*.json, RESULTS.md"; then
  command="egs/mini/psn/run.sh ${corpus:+--corpus fsdd }--systems '$systems' --teachers '$teachers' --epsilon $epsilon --unit $unit --students $students"
  steps/report_commands.sh --command "$command" --started "$started" --title "$title" exp results
fi
