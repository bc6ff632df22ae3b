#!/usr/bin/env bash
# Word error rate of Whisper on a released set, against the set's own text -> <asr-dir>/<set>/metrics.json
#
# With --model that of one trained by steps/train_transducer.sh, e.g. on released speech (U_ASR of paper A = 1 - WER);
# with --transcripts that of any other.
#
# Usage: steps/score_asr.sh [options] <asr-dir> <data-dir>

set -euo pipefail

nj=2             # parallel jobs
cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
baseline=false   # true: the set is clear speech
system=          # name in the tables; empty: that in privacy.json
model=tiny.en    # or the path of a Whisper model in CTranslate2 form, or a folder of steps/train_transducer.sh
beam_size=5      # 1: greedy
transcripts=     # table of <utterance> <words> of another recogniser, in place of Whisper's
recogniser=      # its name, which --transcripts and such a folder need
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <asr-dir> <data-dir>; see $0 --help" >&2
  exit 2
fi
data=$2
out=$1/$(basename "$data") # metrics.json, hyp/text, shards and logs

inputs=(wav="$data/wav.scp" text="$data/text" system="$system" model="$model" beam_size="$beam_size")
inputs+=(transcripts="$transcripts" recogniser="$recogniser")
if [ -f "$data/privacy.jsonl" ]; then
  inputs+=(privacy="$data/privacy.jsonl")
elif [ "$baseline" = false ]; then
  echo "$0: $data has no privacy.jsonl; clear speech is scored only with --baseline true" >&2
  exit 2
fi
own=() other=() # of the two actions
if [ -n "$transcripts" ] || [ -f "$model/model.pt" ]; then
  other=(--recogniser "$recogniser")
fi
if [ -f "$model/model.pt" ]; then
  own=(--features "$data")
  inputs+=(weights="$model/model.pt")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
if [ -n "$transcripts" ]; then
  python3 -m dpanon.cli.score_asr score --baseline "$baseline" --system "$system" "${other[@]}" \
    "$data" "$transcripts" "$out"
  mark_done "$out" "$out/metrics.json"
  exit 0
fi
utils/split_data.py "$data" "$nj" "$out/nj$nj"
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd --pick incomplete JOB=1:"$nj" "$out/nj$nj/JOB/log" \
  python3 -m dpanon.cli.score_asr transcribe --model "$model" --beam-size "$beam_size" ${own[@]+"${own[@]}"} \
  "$out/nj$nj/JOB" "$out/nj$nj/JOB/hyp/text"
mkdir -p "$out/hyp"
utils/merge_tables.py "$out/hyp/text" "$data/utt2spk" "$out/nj$nj"/*/hyp/text
python3 -m dpanon.cli.score_asr score --baseline "$baseline" --system "$system" --model "$model" \
  --beam-size "$beam_size" ${other[@]+"${other[@]}"} "$data" "$out/hyp/text" "$out"
mark_done "$out" "$out/metrics.json"
