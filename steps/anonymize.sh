#!/usr/bin/env bash
# Release a set: <data-dir> -> <out-data-dir> with wav/, tables, privacy.json and privacy.jsonl
#
# The only step through which private speech becomes public. It never releases a set a second time by itself: a step
# that was stopped goes on where it was, one that is done is skipped, one with other inputs stops (exit code 3).
#
# Usage: steps/anonymize.sh [options] <data-dir> <out-data-dir>

set -euo pipefail

nj=4                        # processes, of each job
num_parts=1                 # more than 1: an array of so many jobs, for a cluster, without a ledger
cmd=utils/run.py            # utils/run.py here, utils/slurm.py on a cluster
system=dp                   # see dpanon anonymize --help; plain: no noise, no guarantee; voxlet: noise in the voice
noise_level=1               # 1 / mu of the voice; voxlet only
sigma_rule=corrected        # sigma = 2 U / mu, or as-published: U / mu; voxlet only
voice_model=                # directory of steps/train_speaker.sh; empty: the shipped one; voxlet only
dp_too=false                # true: noise in f0 and content, too, as the next options say; voxlet only
epsilon_f0=                 # of one utterance; these four are of systems with such noise only, which have a default
epsilon_bn=                 # of one frame
epsilon_token=              # of one token
mu_f0=                      # of one utterance
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

add() { [ -z "$2" ] || options+=("$1" "$2"); } # an option that is given
options=(--system "$system" --target "$target" --f0-method "$f0_method")
if [ "$system" = voxlet ]; then
  options+=(--noise-level "$noise_level" --sigma-rule "$sigma_rule")
fi
if [ "$system" != voxlet ] || [ "$dp_too" = true ]; then
  noise=$(python3 -m dpanon.cli.list_releases --system "$system" --epsilon-f0 "$epsilon_f0" \
    --epsilon-bn "$epsilon_bn" --epsilon-token "$epsilon_token" --mu-f0 "$mu_f0")
  read -ra noise <<<"$noise" # system, suffix, options
  options+=("${noise[@]:2}")
fi
add --keyed-noise "$keyed_noise"
add --pad-lengths "${pad_lengths#false}"
add --ledger "$ledger"
inputs=(wav="$data/wav.scp" utt2spk="$data/utt2spk" options="${options[*]}")
add_folder() { # one whose content counts
  if [ -n "$3" ]; then
    inputs+=("$1=$3")
    options+=("$2" "$3")
  fi
}
add_folder models --models "$models"
add_folder voice_model --voice-model "$voice_model"
add --cap-epsilon "$cap_epsilon" # a cap is no input: another one changes nothing about what is released
add --cap-epsilon-speaker "$cap_epsilon_speaker"
if already_done "$log_dir" "${inputs[@]}"; then
  exit 0
fi
release=(python3 -m dpanon.cli.anonymize --jobs "$nj" --allow-refused "$allow_refused" "${options[@]}")
# shellcheck disable=SC2086  # cmd is a command and its options
[ "$num_parts" -eq 1 ] ||
  $cmd JOB=1:"$num_parts" "$log_dir/part.JOB.log" "${release[@]}" --part JOB/"$num_parts" "$data" "$out"
# shellcheck disable=SC2086
$cmd "$log_dir/anonymize.log" "${release[@]}" "$data" "$out"
mark_done "$log_dir" "$out/wav.scp" "$out/privacy.json" "$out/privacy.jsonl"
