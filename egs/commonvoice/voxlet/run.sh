#!/usr/bin/env bash
# The recording's own voice, released by a Gaussian mechanism (paper B), as embeddings and as speech.
#
#   audio -> x-vector -> VAE mean --[L2 ball, Gaussian noise]--> clamp, VAE decoder -> x-vector' --\
#         \> bn, f0 (plain; with an epsilon: with noise of their own) -------------------------------> wav -> EER, WER
#
# Usage: ./run.sh --common-voice PATH/cv-corpus-13.0 --corpus PATH/LibriSpeech [options]
#        ./run.sh --corpus PATH/LibriSpeech --partial true       # the VAE learns from LibriSpeech, too
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                       # first stage to run
stop_stage=7                  # last stage to run
list=false                    # only print the stages
nj=2                          # parallel jobs of extraction, release and recognition
corpus=corpora/LibriSpeech    # trains the attackers and is attacked
common_voice=                 # trains the VAE; empty: the training part of LibriSpeech does
language=en                   # of Common Voice
unlabelled=                   # folder of .flac files (speech_to_intent) that train the VAE, too
partial=false                 # take parts that are not complete
train_part="train-clean-100"  # of LibriSpeech
test_part="test-other"        # of LibriSpeech
noise_levels="0 0.5 1 2 5 10" # 1 / mu, of released embeddings; 0: no noise, no guarantee
audio_levels="0.001 1 10"     # of released speech; empty: none
speech_speakers=              # so many of data/train teach the attackers of speech; empty: all
speech_pieces=4               # of each of them
speech_utts=                  # so many of each test speaker are released as speech; empty: all
sigma_rule=corrected          # sigma = 2 U / mu; as-published: U / mu, whose true mu is twice as large
epsilon_f0=                   # noise in f0, too: of one utterance; empty: none
mu_f0=                        # the same by contours
epsilon_bn=                   # noise in what is said, too: of one frame; with f0's: one guarantee, no assumption
keyed_noise=                  # seed of repeatable noise, for tests: such a release must not leave
. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/stages.sh

case $sigma_rule in
  corrected) rule= ;;
  as-published) rule=_published ;;
  *) _misuse "--sigma-rule takes corrected or as-published, not '$sigma_rule'" ;;
esac
rule+=${keyed_noise:+_keyed$keyed_noise}
audio=$rule # data/<set>_speech -> data/<set>_speech<level>$audio
audio+=${epsilon_f0:+_f0eps$epsilon_f0}${mu_f0:+_f0mu$mu_f0}${epsilon_bn:+_bneps$epsilon_bn}
dp_too=$([ -z "$epsilon_f0$mu_f0$epsilon_bn" ] && echo false || echo true) # noise beside that of the voice
command="cd egs/commonvoice/voxlet && ./run.sh --corpus LibriSpeech --partial $partial --noise-levels '$noise_levels'"
command+=" --audio-levels '$audio_levels' --speech-speakers '$speech_speakers' --speech-pieces $speech_pieces --speech-utts '$speech_utts'"
command+=" --sigma-rule $sigma_rule${epsilon_f0:+ --epsilon-f0 $epsilon_f0}${mu_f0:+ --mu-f0 $mu_f0}${epsilon_bn:+ --epsilon-bn $epsilon_bn}"
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing
if [ "$list" = false ]; then
  "$DPANON_ROOT/tools/setup.sh" --for mini
fi
more=${unlabelled:+data/unlabelled}
public=data/train
if [ -n "$common_voice" ]; then
  public=data/public
fi

if at_stage 0 "data: LibriSpeech -> data/{train,test}, Common Voice -> data/public"; then
  local/librispeech/prepare.sh --partial "$partial" --parts "$train_part $test_part" --trials "$test_part" "$corpus" data
  other=data/${test_part//-/_}
  steps/combine_data.sh data/test "${other}_enrolls" "${other}_trials_f" "${other}_trials_m"
  if [ ! -e data/train/wav.scp ]; then # pieces: a speaker of one long utterance still shows how a voice varies
    utils/cut_data.py --seconds 3.5 --most 4 "data/${train_part//-/_}" data/train
  fi
  if [ ! -e data/train_speech ]; then
    utils/subset_data.py --speakers "${speech_speakers:-1000000}" --per-speaker "$speech_pieces" data/train data/train_speech
    utils/subset_data.py --per-speaker "${speech_utts:-1000000}" data/test data/test_speech
  fi
  if [ -n "$common_voice" ] && [ ! -e data/public ]; then
    local/commonvoice/prepare.py --language "$language" --per-speaker 10 "$common_voice" train data/public
  fi
  if [ -n "$unlabelled" ] && [ ! -e data/unlabelled ]; then
    local/speech_to_intent/prepare.py "$unlabelled" data/unlabelled
  fi
fi

if at_stage 1 "features: data/{train,test}${common_voice:+, data/public} -> xvector.scp"; then
  for set in data/train data/test ${common_voice:+data/public} $more; do
    steps/extract_xvector.sh --nj "$nj" --cmd "$cpu_cmd" "$set"
  done
fi

if at_stage 2 "DP extractors: $public -> exp/speaker, the VAE with its U and clamp"; then
  steps/train_speaker.sh --cmd "$gpu_cmd" --more "$more" conf/speaker.yaml "$public" exp/speaker
fi

if at_stage 3 "public models: the shipped ones make speech of bn, f0 and a released voice"; then
  log "the shipped ones, see dpanon/anonymize/pretrained"
fi

if at_stage 4 "release: data/{train,test} -> embeddings of every noise level, speech of some, with their privacy.json"; then
  for level in $noise_levels; do
    for set in train test; do
      steps/protect_embeddings.sh --cmd "$cpu_cmd" --noise-level "$level" --sigma-rule "$sigma_rule" \
        --name "voice$level$rule" --keyed-noise "$keyed_noise" exp/speaker "data/$set" "data/${set}_voice$level$rule"
    done
  done
  for level in $audio_levels; do
    for set in test_speech train_speech; do
      steps/anonymize.sh --nj "$nj" --cmd "$cpu_cmd" --system voxlet --noise-level "$level" --sigma-rule "$sigma_rule" \
        --voice-model exp/speaker --dp-too "$dp_too" --epsilon-f0 "$epsilon_f0" --mu-f0 "$mu_f0" \
        --epsilon-bn "$epsilon_bn" --keyed-noise "$keyed_noise" "data/$set" "data/$set$level$audio"
    done
  done
fi

if at_stage 5 "attack: embeddings and speech of every level against training data of that level -> EER with its floor"; then
  steps/score_embeddings.sh --cmd "$cpu_cmd" --baseline true --gender false --system original_voice \
    data/train data/train data/test data/test exp/score_original
  if [ -n "$audio_levels" ]; then
    steps/train_asv.sh --cmd "$cpu_cmd" --baseline true conf/asv.yaml data/train_speech exp/asv_original
  fi
  for level in $noise_levels; do
    steps/score_embeddings.sh --cmd "$cpu_cmd" --gender false --facts "noise_level=$level" \
      data/train "data/train_voice$level$rule" data/test "data/test_voice$level$rule" "exp/score_voice$level$rule"
  done
  for level in $audio_levels; do
    name=speech$level$audio
    steps/train_asv.sh --cmd "$cpu_cmd" conf/asv.yaml "data/train_$name" "exp/asv_$name"
    steps/score_asv.sh --cmd "$cpu_cmd" --system "$name" --check-floor false \
      "exp/asv_$name" "data/test_$name" "data/test_$name"
  done
fi

if at_stage 6 "utility: WER and distinct voices of released speech"; then
  for level in $audio_levels; do
    name=speech$level$audio
    steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --system "$name" exp/asr "data/test_$name"
    steps/score_voices.sh --cmd "$cpu_cmd" --system "$name" exp/asv_original data/test_speech "data/test_$name"
  done
fi

if at_stage 7 "report: figures of all systems -> results/*.json, results/speaker.svg, RESULTS.md"; then
  names=original_voice scores=(exp/score_original) # of this run
  for level in $noise_levels; do names+=" voice$level$rule" scores+=("exp/score_voice$level$rule"); done
  for level in $audio_levels; do names+=" speech$level$audio" scores+=("exp/asv_speech$level$audio"); done
  steps/plot_embeddings.sh exp results
  steps/report.sh --command "$command" --started "$started" --title "released voices, LibriSpeech $test_part" \
    "$names" exp results
  steps/check_floors.sh "${scores[@]}" # fails when an EER is below its floor, and says which assumption broke
fi
