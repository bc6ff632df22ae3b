#!/usr/bin/env bash
# Target voices: pseudo-speakers averaged over clusters of public speakers -> <targets-dir>/{targets.safetensors,contour.json}
#
# <data-dir> has f0.scp, xvector.scp and spk2gender; its speakers must be true ones.
#
# Usage: steps/cluster_targets.sh [options] <data-dir> <targets-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <data-dir> <targets-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$2

if already_done "$out" f0="$data/f0.scp" xvector="$data/xvector.scp" utt2spk="$data/utt2spk" \
  spk2gender="$data/spk2gender"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/cluster.log" python3 -m dpanon.cli.cluster_targets "$data" "$out"
mark_done "$out" "$out/targets.safetensors" "$out/contour.json"
