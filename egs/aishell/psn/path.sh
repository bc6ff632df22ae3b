#!/usr/bin/env bash
# Where programs and packages are; to be sourced by run.sh, in its directory.

DPANON_ROOT=$(cd -P ../../.. && pwd)
export DPANON_ROOT
if [ "${DPANON_SETUP:-true}" != false ]; then # false: what is on PATH is trusted
  export PATH="${DPANON_VENV:-$DPANON_ROOT/.venv}/bin:$PATH"
fi
export PYTHONPATH="$DPANON_ROOT${PYTHONPATH:+:$PYTHONPATH}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" # of each job; --nj is what runs at once
export MPLBACKEND=Agg
