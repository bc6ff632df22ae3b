#!/usr/bin/env bash
# Speaker embeddings that hide the speaker's sex, by an adversarial auto-encoder with a Laplace layer (paper C).
#
#   x -> encoder -> z --[L1 clip, Laplace noise]--> decoder -> x' -> ASV: EER (utility)
#                             \-> adversary (training only)   \-> sex by attackers: AUC (privacy)
#
# Noise in training and noise of the release are two options. Only that of the release promises anything.
#
# Usage: ./run.sh --corpus PATH/VoxCeleb [options]                        # vox2/dev, vox1/dev, vox1/test
#        ./run.sh --kind librispeech --corpus PATH/LibriSpeech --partial true
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                         # first stage to run
stop_stage=7                    # last stage to run
list=false                      # only print the stages
nj=2                            # parallel jobs of the extraction
corpus=corpora/VoxCeleb         # the folder with vox1, vox2 and vox1_meta.csv; or LibriSpeech
kind=voxceleb                   # or librispeech: speakers of one part are shared out, its long utterances cut
partial=false                   # take parts that are not complete
train_part="train-clean-100"    # of LibriSpeech
test_part="test-other"          # of LibriSpeech
unlabelled=                     # folder of .flac files (speech_to_intent) that train the reconstruction, too
extractor=campplus              # or ecapa, the paper's, from a model hub; ge2e
epsilon_train="10 15 20 30 inf" # of the noise in training; a regulariser
epsilon="inf 0.4 1 5 15 35 50"  # of the release, of one embedding; inf: no noise, no guarantee
epsilon_train_released="15 20"  # models that are released with every epsilon; the others with inf only
keyed_noise=                    # seed of repeatable noise, for tests: such a release must not leave
. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/stages.sh

case $kind in
  voxceleb | librispeech) ;;
  *) _misuse "--kind takes voxceleb or librispeech, not '$kind'" ;;
esac
tag=${keyed_noise:+_keyed$keyed_noise}
command="cd egs/voxceleb/gender && ./run.sh --kind $kind --corpus <corpus> --extractor $extractor --epsilon-train '$epsilon_train'"
command+=" --epsilon '$epsilon' --epsilon-train-released '$epsilon_train_released'"
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing
if [ "$list" = false ]; then
  "$DPANON_ROOT/tools/setup.sh" --for mini
fi

releases() { # of a model: the epsilons it is released with
  case " $epsilon_train_released " in
    *" $1 "*) echo "$epsilon" ;;
    *) echo inf ;;
  esac
}

if at_stage 0 "data: $kind -> data/{train,attack,test}, no speaker in two of them"; then
  if [ "$kind" = voxceleb ]; then
    local/voxceleb/prepare.sh --partial "$partial" "$corpus" data
  else
    local/librispeech/prepare.sh --partial "$partial" --parts "$train_part $test_part" --trials "" "$corpus" data
    local/librispeech/share.sh "data/${train_part//-/_}" "data/${test_part//-/_}" data
  fi
  if [ -n "$unlabelled" ] && [ ! -e data/unlabelled ]; then
    local/speech_to_intent/prepare.py "$unlabelled" data/unlabelled
  fi
fi

if at_stage 1 "features: data/{train,attack,test}${unlabelled:+, data/unlabelled} -> xvector.scp"; then
  for set in train attack test ${unlabelled:+unlabelled}; do
    steps/extract_xvector.sh --nj "$nj" --cmd "$cpu_cmd" --extractor "$extractor" "data/$set"
  done
fi

if at_stage 2 "DP extractors: data/train -> exp/gender_eps<epsilon of training>"; then
  for train in $epsilon_train; do
    steps/train_gender.sh --cmd "$gpu_cmd" --epsilon "$train" --more "${unlabelled:+data/unlabelled}" \
      conf/gender.yaml data/train "exp/gender_eps$train"
  done
fi

if at_stage 3 "public models: none; the decoder of stage 2 makes the embeddings"; then
  log "nothing to do"
fi

if at_stage 4 "release: data/{attack,test} -> data/<set>_tr<epsilon of training>_eps<epsilon>, with its privacy.json"; then
  for train in $epsilon_train; do
    for release in $(releases "$train"); do
      for set in attack test; do
        steps/protect_embeddings.sh --cmd "$cpu_cmd" --epsilon "$release" --name "tr${train}_eps$release$tag" \
          --keyed-noise "$keyed_noise" "exp/gender_eps$train" "data/$set" "data/${set}_tr${train}_eps$release$tag"
      done
    done
  done
fi

if at_stage 5 "attack: sex by classifiers that were trained on clean and on released embeddings -> AUC; and stage 6"; then
  steps/score_embeddings.sh --cmd "$cpu_cmd" --baseline true data/attack data/attack data/test data/test exp/score_original
  for train in $epsilon_train; do
    for release in $(releases "$train"); do
      name=tr${train}_eps$release$tag
      steps/score_embeddings.sh --cmd "$cpu_cmd" --facts "epsilon_train=$train epsilon_release=$release" \
        data/attack "data/attack_$name" data/test "data/test_$name" "exp/score_$name"
    done
  done
fi

if at_stage 6 "utility: EER of speaker verification, measured by stage 5 on the same embeddings"; then
  log "see exp/score_*/{oo,oa,aa}/cosine/metrics.json"
fi

if at_stage 7 "report: figures of all systems -> results/*.json, results/gender.svg, RESULTS.md"; then
  steps/plot_embeddings.sh exp results
  steps/report.sh --command "$command" --started "$started" --players 0 --title "gender, $kind" all exp results
fi
