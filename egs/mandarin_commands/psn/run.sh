#!/usr/bin/env bash
# Mandarin words or commands -> public recogniser: no DP, DP-SGD, PATE and PSN at one exact epsilon (paper D, first experiment).
#
#   private -> parts -> teachers --noise--> initials and finals of public speech -> student -> syllable errors
#
# Usage: ./run.sh --corpus DIR [--syllables DIR] [--stage N] [--stop-stage N] [--epsilon E] [--nj N] ...
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                                            # first stage to run
stop_stage=7                                       # last stage to run
list=false                                         # only print the stages
nj=2                                               # parallel jobs
corpus=                                            # folder with manifest.tsv, or with <speaker>/<command>_<take>.wav
syllables=/usr/share/gcin-voice/ogg                # of Debian's gcin-voice: public speech
systems="gnmax gaussian laplace psn psn-published" # some of these, besides start, nodp and dpsgd
teachers=100                                       # their number
epsilon=8                                          # of one unit, exact, of each system (psn-published: by its formula)
delta=1e-5
unit=utterance # what is protected: utterance or speaker
cap=           # most teachers of PSN that may hear one speaker; empty: all
dpsgd=true     # false: leave out DP-SGD, which needs Opacus (and unit utterance)
beam=4         # of the second search
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
if [ "$list" = false ]; then
  if [ -z "$corpus" ]; then
    _misuse "--corpus is needed: a folder with manifest.tsv, or one of commands; README.md has the layouts"
  fi
  "$DPANON_ROOT/tools/setup.sh" --for mini
fi
tokens=local/mandarin/tokens.txt
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

if at_stage 0 "data: gcin-voice; words or commands -> data/{start,private,public,dev,test,test_speakers}"; then
  local/mandarin/prepare.sh --syllables "$syllables" "$corpus" data
fi

if at_stage 1 "features: data/<set> -> fbank.scp"; then
  for set in start private public dev test test_speakers; do
    if [ -d "data/$set" ]; then # commands have no dev
      steps/extract_fbank.sh --nj "$nj" --cmd "$cpu_cmd" "data/$set"
    fi
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
      --system "$system" --start exp/start conf/queries.yaml "${folder[$name]}" \
      data/private data/public "data/public_$system"
    steps/train_transducer.sh --cmd "$gpu_cmd" --start exp/start --private data/private --public data/public \
      conf/transducer_student.yaml "$tokens" "data/public_$system" "exp/$system"
  done
  if [ "$dpsgd" = true ]; then
    steps/train_dpsgd.sh --cmd "$gpu_cmd" --recogniser transducer --epsilon "$epsilon" --delta "$delta" \
      --start exp/start conf/dpsgd.yaml "$tokens" data/private "exp/dpsgd_eps$epsilon"
  fi
fi

if at_stage 5 "attack: none is run on transducers; the floor of every claim is in the table"; then
  log "membership inference is scored on recognisers of words: egs/mini/psn"
fi

if at_stage 6 "utility: data/dev, data/test, data/test_speakers -> syllable errors of every system"; then
  tests=(data/test data/test_speakers)
  if [ -d data/dev ]; then # words: settings were chosen there
    tests+=(data/dev)
  fi
  for name in start nodp; do
    steps/score_transducer.sh --cmd "$cpu_cmd" --beam "$beam" --baseline true "exp/$name" "${tests[@]}"
  done
  for name in "${private[@]}"; do
    steps/score_transducer.sh --cmd "$cpu_cmd" --beam "$beam" "exp/$name" "${tests[@]}"
  done
fi

if at_stage 7 "report: figures of all systems -> results/*.json, RESULTS.md"; then
  command="egs/mandarin_commands/psn/run.sh --systems '$systems' --teachers $teachers --epsilon $epsilon --unit $unit"
  steps/report_commands.sh --command "$command" --started "$started" --title "Mandarin, syllables" exp results
fi
