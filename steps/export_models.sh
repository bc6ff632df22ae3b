#!/usr/bin/env bash
# Trained models as one bundle of safetensors, in the form of the shipped ones -> <models-dir>
#
# Lists are "name=directory ..."; a name is plain or eps<number>, e.g. --bn "plain=exp/bn_plain eps10=exp/bn_eps10".
#
# Usage: steps/export_models.sh [options] <targets-dir> <models-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
bn=              # bottleneck extractors
f0=              # f0 auto-encoders
synth=           # synthesizers
intonation=      # intonation networks of the extractors of the same names
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <targets-dir> <models-dir>; see $0 --help" >&2
  exit 2
fi
targets=$1
out=$2

inputs=(targets="$targets/targets.safetensors")
options=(--out "$out" --targets "$targets")
add() { # option, name=directory ...
  local kind=$1 pair
  shift
  for pair in "$@"; do
    inputs+=("${kind}_${pair%%=*}=${pair#*=}/checkpoint.pt")
    options+=("--$kind" "$pair")
  done
}
# shellcheck disable=SC2086  # lists of words
{
  add bn $bn
  add f0 $f0
  add synth $synth
  add intonation $intonation
}
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/export.log" python3 -m dpanon.cli.export_models "${options[@]}"
mark_done "$out"
