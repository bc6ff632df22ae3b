#!/usr/bin/env bash
# Speaker anonymization with stated guarantees, from nothing to a report: made speech, shipped models, minutes.
#
#   audio -> f0 ------> DP f0 ---\
#         \> bn ------> DP bn ----> wav -> EER (privacy), WER (utility)
#    pool -> x-vector -> target --/
#
# The first call installs what is missing (see tools/setup.sh). README.md beside this file explains the stages.
#
# Usage: ./run.sh [--stage N] [--stop-stage N] [--system "plain dp"] [--epsilon-f0 E] [--epsilon-bn E] [--nj N]
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0             # first stage to run
stop_stage=7        # last stage to run
list=false          # only print the stages
nj=2                # parallel jobs of extraction, release and recognition
corpus=corpora/mini # where the speech is made
speakers=5          # the first so many of each role and sex; all there are: 10
system="plain dp"   # what to release: some of plain, dp, anon, dp_bn, dp_pitch, naive, dp_contour, token
epsilon_f0=10       # of one utterance; these four are of the systems with such noise, and may be lists
epsilon_bn=10       # of one frame
epsilon_token=14    # of one token
mu_f0=1             # of one utterance
train=false         # train tiny models on the made speech (minutes; they babble) instead of taking the shipped ones
keyed_noise=        # seed of repeatable noise, for tests: such a release must not leave
. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/stages.sh

noise=(--epsilon-f0 "$epsilon_f0" --epsilon-bn "$epsilon_bn" --epsilon-token "$epsilon_token" --mu-f0 "$mu_f0")
releases=$(python3 -m dpanon.cli.list_releases --system "$system" "${noise[@]}") # lines: system, suffix, its noise
keyed=${keyed_noise:+_keyed$keyed_noise}
suffixes=$(while read -r _ suffix _; do echo "$suffix$keyed"; done <<<"$releases") # data/<set> -> data/<set>$suffix
models=                                                                            # the shipped ones
if [ "$train" = true ]; then
  models=exp/models
fi
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing
if [ "$list" = false ]; then
  "$DPANON_ROOT/tools/setup.sh" --for mini
fi

if at_stage 0 "data: flite and espeak-ng voices -> $corpus -> data/{train,test}"; then
  local/mini/prepare.sh --nj "$nj" --speakers "$speakers" "$corpus" data
fi

if at_stage 1 "features: data/train -> f0.scp, xvector.scp, content.scp"; then
  if [ "$train" = true ]; then
    steps/extract_f0.sh --nj "$nj" --cmd "$cpu_cmd" data/train
    steps/extract_xvector.sh --nj "$nj" --cmd "$cpu_cmd" data/train
    steps/extract_content.sh --nj "$nj" --cmd "$cpu_cmd" data/train
  else
    log "none: the shipped models serve, and stage 4 makes features of its own; --train true needs them here"
  fi
fi

if at_stage 2 "DP extractors: data/train -> exp/synth_*/bn, exp/f0_*, or the shipped ones"; then
  if [ "$train" = true ]; then # an extractor and its synthesizer learn together, so here are both
    steps/train_bn.sh --cmd "$gpu_cmd" conf/bn.yaml data/train exp/bn_start
    steps/train_synth.sh --cmd "$gpu_cmd" conf/synth.yaml data/train exp/bn_start exp/synth_plain
    for epsilon in $epsilon_bn; do
      steps/train_synth.sh --cmd "$gpu_cmd" --noise "$epsilon" --init exp/synth_plain conf/synth.yaml \
        data/train exp/synth_plain/bn "exp/synth_eps$epsilon"
    done
    for epsilon in $epsilon_f0; do
      steps/train_f0.sh --cmd "$gpu_cmd" --epsilon "$epsilon" conf/f0.yaml data/train "exp/f0_eps$epsilon"
    done
  else
    log "the shipped ones, see dpanon/anonymize/pretrained"
  fi
fi

if at_stage 3 "public models: targets of the shipped ones; all models -> exp/models, or the shipped ones"; then
  if [ "$train" = true ]; then # the made speech has too few voices for pseudo-speakers of its own
    f0='' bn=plain=exp/synth_plain/bn synth=plain=exp/synth_plain
    for epsilon in $epsilon_f0; do
      f0+=" eps$epsilon=exp/f0_eps$epsilon"
    done
    for epsilon in $epsilon_bn; do
      bn+=" eps$epsilon=exp/synth_eps$epsilon/bn"
      synth+=" eps$epsilon=exp/synth_eps$epsilon"
    done
    steps/export_models.sh --f0 "$f0" --bn "$bn" --synth "$synth" \
      "$DPANON_ROOT/dpanon/anonymize/pretrained" exp/models
  else
    log "the shipped ones, see dpanon/anonymize/pretrained"
  fi
fi

if at_stage 4 "release: data/<set> -> data/<set>_<system>, with its privacy.json"; then
  while read -r name suffix options; do
    for set in train test; do
      # shellcheck disable=SC2086  # options are words
      steps/anonymize.sh --nj "$nj" --cmd "$cpu_cmd" --system "$name" $options \
        --models "$models" --keyed-noise "$keyed_noise" "data/$set" "data/$set$suffix$keyed" </dev/null
    done
  done <<<"$releases"
fi

if at_stage 5 "attack: ASV trained on data/train of each system -> EER, linkability"; then
  steps/train_asv.sh --cmd "$cpu_cmd" --baseline true conf/asv.yaml data/train exp/asv_original
  steps/score_asv.sh --cmd "$cpu_cmd" --baseline true exp/asv_original data/test data/test
  for suffix in $suffixes; do
    asv=exp/asv$suffix test=data/test$suffix
    steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" exp/asv_original data/test "$test"
    steps/train_asv.sh --cmd "$cpu_cmd" conf/asv.yaml "data/train$suffix" "$asv"
    steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" "$asv" "$test" "$test"
  done
fi

if at_stage 6 "utility: data/test of each system -> WER, correlation of f0, DNSMOS"; then
  steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --baseline true exp/asr data/test
  steps/score_quality.sh --cmd "$cpu_cmd" --per-speaker 4 --baseline true data/test
  for suffix in $suffixes; do
    test=data/test$suffix
    steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --system "${suffix#_}" exp/asr "$test"
    steps/score_f0.sh --cmd "$cpu_cmd" --system "${suffix#_}" data/test "$test"
    steps/score_quality.sh --cmd "$cpu_cmd" --per-speaker 4 --system "${suffix#_}" "$test"
  done
fi

if at_stage 7 "report: figures of all systems -> results/*.json, RESULTS.md, report.html"; then
  command="egs/mini/anon/run.sh --system '$system' --epsilon-f0 '$epsilon_f0' --epsilon-bn '$epsilon_bn' --epsilon-token '$epsilon_token' --mu-f0 '$mu_f0' --train $train"
  for suffix in _original $suffixes; do # one by one, as each has a command of its own
    steps/report.sh --command "$command" --started "$started" --title "made speech" \
      "${suffix#_}" exp results >exp/report.txt
  done
  cat exp/report.txt
fi
