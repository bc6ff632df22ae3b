#!/usr/bin/env bash
# Feed broken bytes to the readers of ledgers and of guarantees in JSON; only a PrivacyError may come out.
#
# Usage: tools/fuzz.sh [--minutes N]

set -euo pipefail

minutes=10 # in all

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"
cd "$root"
export PATH="${DPANON_VENV:-$root/.venv}/bin:$PATH"

DPANON_FUZZ_MINUTES=$minutes OMP_NUM_THREADS=1 python -m pytest -q tests/unit/privacy/test_privacy_fuzz.py
