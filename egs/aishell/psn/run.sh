#!/usr/bin/env bash
# AISHELL-1 -> public recogniser of Mandarin: no DP, DP-SGD, PATE and PSN at one exact epsilon (paper D, second experiment).
#
#   private -> parts -> teachers --noise--> characters of public speech -> student -> CER
#
# Usage: ./run.sh --corpus DIR --public-corpus DIR [--stage N] [--stop-stage N] [--epsilon E] [--nj N] ...
#        ./run.sh --dry-run true   # parameters, memory, time, and what the answers cost; needs no corpus
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                                            # first stage to run
stop_stage=7                                       # last stage to run
list=false                                         # only print the stages
dry_run=false                                      # true: say what it takes, and do nothing
nj=8                                               # parallel jobs
corpus=                                            # folder that holds data_aishell and resource_aishell
public_corpus=                                     # folder of Common Voice that holds zh-CN
systems="gnmax gaussian laplace psn psn-published" # some of these, besides start, nodp and dpsgd
teachers=10                                        # their number, the paper's
epsilon=8                                          # of one unit, exact, of each system (psn-published: by its formula)
delta=1e-5
unit=utterance # what is protected: utterance or speaker
cap=           # most teachers of PSN that may hear one speaker; empty: all
dpsgd=true     # false: leave out DP-SGD, which needs Opacus (and unit utterance)
beam=10        # of the second search
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
if [ "$dry_run" = true ] && [ "$list" = false ]; then
  exec python3 -m dpanon.cli.plan_transducer --config conf/transducer_nodp.yaml --plan conf/plan.yaml \
    --epsilon "$epsilon" --delta "$delta"
fi
if [ "$list" = false ] && { [ -z "$corpus" ] || [ -z "$public_corpus" ]; }; then
  _misuse "--corpus and --public-corpus are needed: AISHELL-1 and Common Voice; --dry-run true needs neither"
fi
tokens=data/tokens.txt
declare -A folder # method -> its teachers
for name in $systems; do
  case $name in
    psn*) folder[$name]=exp/teachers_$name ;; # they answer once: each has its own
    *) folder[$name]=exp/teachers ;;
  esac
done
private=()
for name in $systems; do
  private+=("${name}_eps$epsilon")
done
if [ "$dpsgd" = true ]; then
  private+=("dpsgd_eps$epsilon")
fi
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing

if at_stage 0 "data: AISHELL-1, Common Voice zh-CN -> data/{private,dev,test,start,public}"; then
  local/aishell/prepare.sh "$corpus" "$public_corpus" data
fi

if at_stage 1 "features: data/<set> -> fbank.scp"; then
  for set in private dev test start public; do
    steps/extract_fbank.sh --nj "$nj" --cmd "$cpu_cmd" "data/$set"
  done
fi

if at_stage 2 "teachers: public model -> exp/start; parts of data/private -> exp/teachers*; no DP -> exp/nodp"; then
  steps/train_transducer.sh --cmd "$gpu_cmd" --baseline true conf/transducer_start.yaml "$tokens" data/start exp/start
  steps/train_transducer.sh --cmd "$gpu_cmd" --baseline true --start exp/start \
    conf/transducer_nodp.yaml "$tokens" data/private exp/nodp
  for dir in $(printf '%s\n' "${folder[@]}" | sort -u); do
    rate=
    case $dir in *_psn*) rate=1/$teachers ;; esac
    steps/partition_data.sh --number "$teachers" --unit "$unit" --rate "$rate" --cap "${rate:+$cap}" data/private "$dir"
    steps/train_teachers.sh --nj "$nj" --cmd "$gpu_cmd" --recogniser transducer \
      conf/transducer_teacher.yaml exp/start data/private "$dir"
  done
fi

if at_stage 3 "public models: the one that teachers began with (stage 2); nothing else"; then
  log "there is no private speech in exp/start"
fi

if at_stage 4 "release: answers of teachers -> data/public_<system>; their student and DP-SGD -> exp/<system>"; then
  for name in $systems; do
    system=${name}_eps$epsilon
    steps/release_labels.sh --cmd "$cpu_cmd" --method "$name" --epsilon "$epsilon" --delta "$delta" \
      --system "$system" conf/queries.yaml "${folder[$name]}" data/private data/public "data/public_$system"
    steps/train_transducer.sh --cmd "$gpu_cmd" --start exp/start --private data/private --public data/public \
      --known data/start conf/transducer_student.yaml "$tokens" "data/public_$system" "exp/$system"
  done
  if [ "$dpsgd" = true ]; then
    steps/train_dpsgd.sh --cmd "$gpu_cmd" --recogniser transducer --epsilon "$epsilon" --delta "$delta" \
      --start exp/start conf/dpsgd.yaml "$tokens" data/private "exp/dpsgd_eps$epsilon"
  fi
fi

if at_stage 5 "attack: none is run on transducers; the floor of every claim is in the table"; then
  log "membership inference is scored on recognisers of words: egs/mini/psn"
fi

if at_stage 6 "utility: data/dev, data/test -> CER of every system"; then
  for name in start nodp; do
    steps/score_transducer.sh --cmd "$cpu_cmd" --beam "$beam" --baseline true "exp/$name" data/dev data/test
  done
  for name in "${private[@]}"; do
    steps/score_transducer.sh --cmd "$cpu_cmd" --beam "$beam" "exp/$name" data/dev data/test
  done
fi

if at_stage 7 "report: figures of all systems -> results/*.json, RESULTS.md"; then
  command="egs/aishell/psn/run.sh --systems '$systems' --teachers $teachers --epsilon $epsilon --unit $unit"
  steps/report_commands.sh --command "$command" --started "$started" --title "AISHELL-1, characters" exp results
fi
