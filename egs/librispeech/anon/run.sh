#!/usr/bin/env bash
# Speaker anonymization of LibriSpeech, scored by attackers and by a recogniser.
#
#   audio -> f0 ------> DP f0 ---\
#         \> bn ------> DP bn ----> wav -> EER (privacy), WER (utility)
#    pool -> x-vector -> target --/
# Usage: ./run.sh --corpus PATH/LibriSpeech [--partial true] [options]; ./run.sh --list true: the stages, without running them

set -euo pipefail
cd "$(dirname "$0")"

stage=0                      # first stage to run
stop_stage=7                 # last stage to run
list=false                   # only print the stages
nj=2                         # parallel jobs of extraction, release and recognition
corpus=corpora/LibriSpeech   # the folder with SPEAKERS.TXT
download=false               # fetch it first
partial=false                # take parts that are not complete
train_part="train-clean-100" # trains the attackers; with --train true also the models
test_part="test-other"       # is attacked
system="plain dp"            # what to release: some of plain, dp, anon, dp_bn, dp_pitch, naive, dp_contour, token
epsilon_f0=10                # of one utterance; these four are of the systems with such noise, and may be lists
epsilon_bn=10                # of one frame
epsilon_token=14             # of one token
mu_f0=1                      # of one utterance
train=false                  # train the models (hours) instead of taking the shipped ones
unlabelled=                  # folder of .flac files (speech_to_intent), more speech to train the models on
synthesizer=harmonic         # with --train true: harmonic, or behind it nsf or hifigan (the latter needs SpeechBrain)
scale=small                  # of the networks: small, or full, as in the paper (conf/full)
dry_run=false                # only say what the recipe needs: parameters, disk, time
identify=false               # attack f0 and bottleneck sequences, too (P_ASI; needs hama)
ecapa=false                  # train ECAPA-TDNN on each release, too, from scratch and fine-tuned (needs SpeechBrain)
draws=1                      # releases of each system, with other targets and noise: how figures vary
own_asr=false                # train a recogniser on original speech and on each release, too
keyed_noise=                 # seed of repeatable noise, for tests: such a release must not leave
. ./path.sh
. ./cmd.sh
. utils/parse_options.sh
. utils/stages.sh
[ -z "$keyed_noise" ] || [ "$draws" = 1 ] || _misuse "--draws $draws: keyed noise is the same in each; leave out --keyed-noise"
noise=(--epsilon-f0 "$epsilon_f0" --epsilon-bn "$epsilon_bn" --epsilon-token "$epsilon_token" --mu-f0 "$mu_f0")
releases=$(python3 -m dpanon.cli.list_releases --system "$system" --draws "$draws" "${noise[@]}") # lines: system, suffix, its noise
keyed=${keyed_noise:+_keyed$keyed_noise}
suffixes=$(while read -r _ suffix _; do echo "$suffix$keyed"; done <<<"$releases") # data/<set> -> data/<set>$suffix
trainset=${train_part//-/_} testset=${test_part//-/_}
public="train${unlabelled:+ unlabelled}" models=$([ "$train" = false ] || echo exp/models) # sets they learn from; or the shipped ones
case $synthesizer in harmonic) voice=exp/synth ;; nsf | hifigan) voice=exp/$synthesizer ;; *) _misuse "--synthesizer takes harmonic, nsf or hifigan, not '$synthesizer'" ;; esac
case $scale in small) conf=conf heard=content ;; full) conf=conf/full heard=fbank ;; *) _misuse "--scale takes small or full, not '$scale'" ;; esac
started=$([ -e exp ] || date +%s) # a rerun skips what is done: how long it took says nothing
[ "$list" = true ] || "$DPANON_ROOT/tools/setup.sh" --for mini
[ "$dry_run" = false ] || exec python3 -m dpanon.cli.plan_anon --synthesizer "$synthesizer" "$conf" # with $conf/footprint.yaml

if at_stage 0 "data: LibriSpeech -> data/{train,train_again,test}"; then
  [ "$download" = false ] || local/librispeech/download.sh --parts "$train_part $test_part" "$(dirname "$corpus")"
  local/librispeech/prepare.sh --partial "$partial" --parts "$train_part $test_part" --trials "$test_part" "$corpus" data
  steps/combine_data.sh data/test "data/${testset}_enrolls" "data/${testset}_trials_f" "data/${testset}_trials_m"
  for set in train train_again; do steps/combine_data.sh "data/$set" "data/$trainset"; done # twice: more target voices
  [ -z "$unlabelled" ] || [ -e data/unlabelled ] || local/speech_to_intent/prepare.py "$unlabelled" data/unlabelled
fi

if at_stage 1 "features: data/train${unlabelled:+, data/unlabelled} -> f0.scp, xvector.scp, content.scp; data/public"; then
  if [ "$train" = true ]; then
    for set in $public; do
      steps/extract_f0.sh --nj "$nj" --cmd "$cpu_cmd" "data/$set"
      steps/extract_xvector.sh --nj "$nj" --cmd "$cpu_cmd" "data/$set"
      steps/extract_content.sh --nj "$nj" --cmd "$cpu_cmd" "data/$set"
    done
    steps/combine_data.sh data/public data/train ${unlabelled:+data/unlabelled}
  fi
fi

if at_stage 2 "DP extractors: data/public -> exp/bn_*, exp/f0_*, and those in exp/synth_*/bn, or the shipped ones"; then
  if [ "$train" = true ]; then # an extractor and its synthesizer learn together, so here are both
    steps/train_bn.sh --cmd "$gpu_cmd" "$conf/bn_start.yaml" data/public exp/bn_start
    steps/train_synth.sh --cmd "$gpu_cmd" "$conf/synth.yaml" data/public exp/bn_start exp/synth_plain
    steps/train_synth.sh --cmd "$gpu_cmd" --noise 10 --init exp/synth_plain "$conf/synth_codes.yaml" data/public exp/synth_plain/bn exp/synth_eps10
    steps/train_intonation.sh --cmd "$gpu_cmd" --noise 10 "$conf/intonation.yaml" data/public exp/synth_eps10/bn exp/intonation_eps10
    for pair in plain=none eps10=10; do # another synthesizer learns on the extractors of the first
      [ "$synthesizer" = harmonic ] || steps/train_synth.sh --cmd "$gpu_cmd" --noise "${pair#*=}" \
        "$conf/synth_$synthesizer.yaml" data/public "exp/synth_${pair%=*}/bn" "${voice}_${pair%=*}"
    done
    for e in 100 10 1; do steps/train_f0.sh --cmd "$gpu_cmd" --epsilon $e "$conf/f0.yaml" data/public "exp/f0_eps$e"; done
  fi
fi

if at_stage 3 "public models: data/train -> exp/targets; all models -> exp/models, or the shipped ones"; then
  if [ "$train" = true ]; then
    steps/cluster_targets.sh --cmd "$cpu_cmd" data/train exp/targets # true speakers only
    steps/export_models.sh --f0 "eps100=exp/f0_eps100 eps10=exp/f0_eps10 eps1=exp/f0_eps1" \
      --bn "plain=exp/synth_plain/bn eps10=exp/synth_eps10/bn" --intonation eps10=exp/intonation_eps10 \
      --synth "plain=${voice}_plain eps10=${voice}_eps10" exp/targets exp/models
  fi
fi

if at_stage 4 "release: data/<set> -> data/<set>_<system>, with its privacy.json"; then
  while read -r name suffix options; do
    for set in test train train_again; do
      # shellcheck disable=SC2086  # options are words
      steps/anonymize.sh --nj "$nj" --cmd "$cpu_cmd" --system "$name" $options \
        --models "$models" --keyed-noise "$keyed_noise" "data/$set" "data/$set$suffix$keyed" </dev/null
    done
  done <<<"$releases"
fi

if at_stage 5 "attack: ASV trained on data/train* of each system -> EER, linkability"; then
  steps/train_asv.sh --cmd "$cpu_cmd" --baseline true "$conf/asv.yaml" data/train exp/asv_original
  steps/score_asv.sh --cmd "$cpu_cmd" --baseline true exp/asv_original data/test data/test
  for suffix in $suffixes; do
    asv=exp/asv$suffix test=data/test$suffix
    for enrol in data/test "$test"; do steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" exp/asv_original "$enrol" "$test"; done # ignorant, lazy-informed
    steps/train_asv.sh --cmd "$cpu_cmd" "$conf/asv.yaml" data/train{,_again}"$suffix" "$asv"
    steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" "$asv" "$test" "$test"
    [ "$ecapa" = true ] || continue
    steps/train_ecapa.sh --cmd "$gpu_cmd" --baseline true "$conf/ecapa.yaml" data/train exp/asv_original_ecapa
    steps/score_asv.sh --cmd "$cpu_cmd" --baseline true exp/asv_original_ecapa data/test data/test # can it tell speakers?
    for init in "" exp/asv_original_ecapa; do                                                      # from scratch, fine-tuned
      steps/train_ecapa.sh --cmd "$gpu_cmd" --init "$init" "$conf/ecapa.yaml" data/train{,_again}"$suffix" "${asv}_ecapa${init:+_tuned}"
      steps/score_asv.sh --cmd "$cpu_cmd" --system "${suffix#_}" "${asv}_ecapa${init:+_tuned}" "$test" "$test"
    done
  done
  [ "$identify" = false ] || steps/score_asi.sh --nj "$nj" --cmd "$gpu_cmd" --models "$models" --bn-config "$conf/bn_tdnnf.yaml" "$conf/asi.yaml" data/train exp/asi
  [ "$identify" = false ] || steps/plot_asi.sh --command "cd egs/librispeech/anon && ./run.sh --identify true --partial $partial" exp/asi results
fi

if at_stage 6 "utility: data/test of each system -> WER, correlation of f0, DNSMOS"; then
  steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --baseline true exp/asr data/test
  steps/score_quality.sh --cmd "$cpu_cmd" --baseline true data/test
  for suffix in $suffixes; do
    test=data/test$suffix
    steps/score_asr.sh --nj "$nj" --cmd "$cpu_cmd" --system "${suffix#_}" exp/asr "$test"
    steps/score_f0.sh --cmd "$cpu_cmd" --system "${suffix#_}" data/test "$test"
    steps/score_quality.sh --cmd "$cpu_cmd" --system "${suffix#_}" "$test"
    [ "$own_asr" = true ] || continue
    for set in data/{train,test}{,"$suffix"}; do steps/extract_"$heard".sh --nj "$nj" --cmd "$cpu_cmd" "$set"; done
    for pair in = "=$suffix" "$suffix=$suffix"; do # trained on = tested on; empty: original speech
      own=exp/own_asr${pair%=*} trained=train${pair%=*} tested=${pair#*=}
      steps/train_transducer.sh --cmd "$gpu_cmd" --baseline true "$conf/transducer_own.yaml" local/librispeech/characters.txt "data/$trained" "$own"
      steps/score_asr.sh --cmd "$cpu_cmd" --baseline true --system "${tested#_}" --model "$own" --recogniser "own, of $trained" "$own/asr" "data/test$tested"
    done
  done
fi

if at_stage 7 "report: figures of all systems -> results/*.json, RESULTS.md, report.html"; then
  command="cd egs/librispeech/anon && ./run.sh --corpus LibriSpeech --partial $partial --system '$system' --epsilon-f0 '$epsilon_f0' --epsilon-bn '$epsilon_bn' --epsilon-token '$epsilon_token' --mu-f0 '$mu_f0'"
  for suffix in _original $suffixes; do # one by one, as each has a command of its own
    steps/report.sh --command "$command" --started "$started" --title "LibriSpeech $test_part" "${suffix#_}" exp results >exp/report.txt
  done
  cat exp/report.txt
  steps/plot_systems.sh results
fi
