#!/usr/bin/env bash
# VoicePrivacy Challenge: the organisers' data in, anonymized with any system, attacked, scored, and handed in.
#
#   data/<set> -> release -> data/<set><suffix> -> attackers trained on train-clean-360<suffix> -> EER
#                                              \-> WER, emotions, f0, voices -> rank file, zip, archive
#
# Usage: ./run.sh --challenge 2026 --challenge-data PATH/data [--system dp] [--suffix _mine] [options]
#        ./run.sh --list true      # the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                      # first stage to run
stop_stage=7                 # last stage to run
list=false                   # only print the stages
nj=2                         # parallel jobs of recognition; processes of the release
num_parts=1                  # the release of a set as an array of so many jobs, on a cluster; then without a ledger
challenge=2026               # 2026 (track 1), 2024 or 2022
challenge_data=              # the organisers' folder data/; empty: their lists are rebuilt from --corpus
corpus=                      # LibriSpeech, the folder with SPEAKERS.TXT, where there is no --challenge-data
dev_part="dev-clean"         # of --corpus
test_part="test-clean"       # of --corpus
train_part="train-clean-360" # of --corpus
allow_pipes=false            # run the commands in the organisers' wav.scp
partial=false                # take sets that are not complete; such a submission is for trials
system=dp                    # what to release: dp, plain, or voxlet: noise in the voice alone
suffix=                      # of the released sets, e.g. _mine; empty: named after the system
epsilon_f0=10                # of one utterance
epsilon_bn=10                # of one frame
noise_level=1                # 1 / mu of the voice of one utterance; voxlet only
models=                      # directory of weights; empty: the shipped ones
keyed_noise=                 # seed of repeatable noise, for tests: such a release must not leave
ledger=ledger.jsonl          # counts every release, also over challenges; empty: none
ecapa=                       # conf/ecapa.yaml: also the attacker of 2024, from scratch; conf/ecapa_ssl.yaml: of 2026
ecapa_init=                  # weights to fine-tune, see README.md; empty: from scratch
classifier=functionals       # of emotions; wav2vec2 needs a model hub
. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/stages.sh

case $challenge in
  2026) trials=(mixed) emotion=(IEMOCAP_dev IEMOCAP_test) ;;
  2024) trials=(f m) emotion=(IEMOCAP_dev IEMOCAP_test) ;;
  2022) trials=(f m f_common m_common) emotion=() ;;
  *) _misuse "--challenge takes 2026, 2024 or 2022, not '$challenge'" ;;
esac
case $system in
  dp) default=_dp_f0eps${epsilon_f0}_bneps${epsilon_bn} ;;
  plain) default=_plain ;;
  voxlet) default=_voxlet$noise_level ;; # stage 5 fails when content and prosody carry more than its floor allows
  *) _misuse "--system takes dp, plain or voxlet, not '$system'" ;;
esac
suffix=${suffix:-$default}${keyed_noise:+_keyed$keyed_noise}
if [ -n "$keyed_noise" ]; then
  ledger= # what can be repeated is no release
fi
tests=() # <enrolment set>:<trial set>
for split in libri_dev libri_test vctk_dev vctk_test; do
  for kind in "${trials[@]}"; do
    tests+=("${split}_enrolls:${split}_trials_$kind")
  done
done
train="train-clean-360"
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing
name=$(basename "$ecapa" .yaml)   # of that attacker
submission="python3 -m dpanon.cli.submission"
if [ "$list" = false ]; then
  "$DPANON_ROOT/tools/setup.sh" --for mini
fi

there() { # those of the sets that stage 0 made: VCTK is in 2022 only, IEMOCAP has to be asked for
  local name
  for name in "$@"; do
    if [ -e "data/${name#*:}/wav.scp" ]; then echo "$name"; fi
  done
}

if at_stage 0 "data: the organisers' sets, or LibriSpeech with rebuilt lists -> data/<set>"; then
  local/vpc/prepare.sh --challenge "$challenge" --challenge-data "$challenge_data" --allow-pipes "$allow_pipes" \
    --partial "$partial" --dev-part "$dev_part" --test-part "$test_part" --train-part "$train_part" "$corpus" data
fi

if at_stage 1 "features: none, stage 4 makes its own"; then
  log "none: stage 4 makes features of its own"
fi

if at_stage 2 "DP extractors: the shipped ones, or those in --models"; then
  log "${models:-the shipped ones, see dpanon/anonymize/pretrained}; egs/librispeech/anon trains others"
fi

if at_stage 3 "public models: the shipped ones, or those in --models"; then
  log "${models:-the shipped ones, see dpanon/anonymize/pretrained}; egs/librispeech/anon trains others"
fi

if at_stage 4 "release: data/<set> -> data/<set>$suffix, with its privacy.json; a target voice for each utterance"; then
  $submission estimate --challenge "$challenge" --suffix "$suffix" --jobs "$nj" --parts "$num_parts"
  for set in data/*/wav.scp; do
    set=$(basename "$(dirname "$set")")
    if [ ! -e "data/$set/privacy.json" ]; then
      steps/anonymize.sh --nj "$nj" --num-parts "$num_parts" --cmd "$cpu_cmd" \
        --system "$system" --epsilon-f0 "$epsilon_f0" --epsilon-bn "$epsilon_bn" \
        --noise-level "$noise_level" --models "$models" --keyed-noise "$keyed_noise" --ledger "$ledger" \
        "data/$set" "data/$set$suffix"
    fi
  done
fi

if at_stage 5 "attack: ASV trained on data/$train, clear and released -> EER oo, oa, aa, linkability, ZEBRA"; then
  steps/train_asv.sh --cmd "$cpu_cmd" --baseline true conf/asv.yaml "data/$train" exp/asv_original
  steps/train_asv.sh --cmd "$cpu_cmd" conf/asv.yaml "data/$train$suffix" "exp/asv$suffix"
  if [ -n "$ecapa" ]; then
    steps/train_ecapa.sh --cmd "$gpu_cmd" --init "$ecapa_init" "$ecapa" "data/$train$suffix" "exp/$name$suffix"
  fi
  for test in $(there "${tests[@]}"); do
    enrol=data/${test%:*} trial=data/${test#*:}
    steps/score_asv.sh --cmd "$cpu_cmd" --baseline true exp/asv_original "$enrol" "$trial"
    steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" exp/asv_original "$enrol" "$trial$suffix"
    steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" "exp/asv$suffix" "$enrol$suffix" "$trial$suffix"
    if [ -n "$ecapa" ]; then
      steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" "exp/$name$suffix" "$enrol$suffix" "$trial$suffix"
    fi
  done
fi

if at_stage 6 "utility: trials and IEMOCAP, clear and released -> WER, UAR, correlation of f0, DeID, G_VD"; then
  for test in $(there "${tests[@]}"); do
    trial=data/${test#*:}
    steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --baseline true exp/asr "$trial"
    steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --system "${suffix#_}" exp/asr "$trial$suffix"
    steps/score_f0.sh --cmd "$cpu_cmd" --system "${suffix#_}" "$trial" "$trial$suffix"
    steps/score_voices.sh --cmd "$cpu_cmd" --system "${suffix#_}" exp/asv_original "$trial" "$trial$suffix"
  done
  for set in $(there ${emotion[@]+"${emotion[@]}"}); do
    steps/score_ser.sh --cmd "$cpu_cmd" --baseline true --classifier "$classifier" "data/$set" "data/$set"
    steps/score_ser.sh --cmd "$cpu_cmd" --system "${suffix#_}" --classifier "$classifier" "data/$set" "data/$set$suffix"
  done
fi

if at_stage 7 "report: figures -> results/*.json, RESULTS.md, report.html; rank file, zip and archive of the submission"; then
  command="./run.sh --challenge $challenge --partial $partial --system $system --suffix $suffix"
  for label in original "${suffix#_}"; do
    steps/report.sh --command "cd egs/vpc/anon && $command" --started "$started" --title "VoicePrivacy $challenge" \
      "$label" exp results >exp/report.txt
  done
  cat exp/report.txt
  for action in pack check; do
    $submission "$action" --challenge "$challenge" --suffix "$suffix" --partial "$partial" --jobs "$nj"
  done
fi
