#!/usr/bin/env bash
# Release a set: <data-dir> -> <out-data-dir> with wav/, tables, privacy.json and privacy.jsonl
#
# The only step through which private speech becomes public. It never releases a set a second time by itself: a step
# that was stopped goes on where it was, one that is done is skipped, one with other inputs stops (exit code 3).
#
# Usage: steps/anonymize.sh [options] <data-dir> <out-data-dir>

set -euo pipefail

nj=4                        # processes
cmd=utils/run.py            # utils/run.py here, utils/slurm.py on a cluster
system=dp                   # or plain: no noise, no guarantee; voxlet: noise in the voice
noise_level=1               # 1 / mu of the voice; voxlet only
sigma_rule=corrected        # sigma = 2 U / mu, or as-published: U / mu; voxlet only
voice_model=                # directory of steps/train_speaker.sh; empty: the shipped one; voxlet only
dp_too=false                # true: noise in f0 and bn as of dp; voxlet only
epsilon_f0=10               # of one utterance; dp only
epsilon_bn=100              # of one frame; dp only
models=                     # directory of weights; empty: the shipped ones
target=random               # for each utterance, or the id of a target
f0_method=swift             # or yaapt, harvest
pad_lengths=false           # true: to a public ladder of lengths, so that only its step is told
ledger=                     # file that counts every release; empty: none
cap_epsilon=                # the most that all releases of an utterance may cost; needs a ledger
cap_epsilon_speaker=        # the same for a speaker
keyed_noise=                # a seed: repeatable noise, for tests, not to be released
allow_refused=false         # true: go on without the utterances that cannot be anonymized
anonymize_dir=exp/anonymize # stamps and logs
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <data-dir> <out-data-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$2
log_dir=$anonymize_dir/$(basename "$out")

options=(--system "$system" --target "$target" --f0-method "$f0_method")
if [ "$system" = voxlet ]; then
  options+=(--noise-level "$noise_level" --sigma-rule "$sigma_rule")
fi
if [ "$system" = dp ] || { [ "$system" = voxlet ] && [ "$dp_too" = true ]; }; then
  options+=(--epsilon-f0 "$epsilon_f0" --epsilon-bn "$epsilon_bn")
fi
if [ -n "$keyed_noise" ]; then
  options+=(--keyed-noise "$keyed_noise")
fi
if [ "$pad_lengths" = true ]; then
  options+=(--pad-lengths true)
fi
if [ -n "$ledger" ]; then
  options+=(--ledger "$ledger")
fi
inputs=(wav="$data/wav.scp" utt2spk="$data/utt2spk" options="${options[*]}")
if [ -n "$models" ]; then
  inputs+=(models="$models")
  options+=(--models "$models")
fi
if [ -n "$voice_model" ]; then
  inputs+=(voice_model="$voice_model")
  options+=(--voice-model "$voice_model")
fi
if [ -n "$cap_epsilon" ]; then # no input: another cap changes nothing about what is released
  options+=(--cap-epsilon "$cap_epsilon")
fi
if [ -n "$cap_epsilon_speaker" ]; then
  options+=(--cap-epsilon-speaker "$cap_epsilon_speaker")
fi
if already_done "$log_dir" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$log_dir/anonymize.log" \
  python3 -m dpanon.cli.anonymize --jobs "$nj" --allow-refused "$allow_refused" "${options[@]}" "$data" "$out"
mark_done "$log_dir" "$out/wav.scp" "$out/privacy.json" "$out/privacy.jsonl"
