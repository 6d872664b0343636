#!/usr/bin/env bash
# Runs the rows of the table in docs/performance.md, ours and the peers', one job at a time, and
# appends one JSON object a row to bench/results/<machine>.jsonl.
#
#   PEERS=/folder bench/run_peers.sh [--only ROW|JOB ...] [--ours-only|--peers-only] [--again] [--list]
#
# Resumable: what the results file has already is skipped, unless --again. A job has five minutes,
# and starts only when other processes leave the machine alone (--noisy starts it anyway).
#
#   PEERS         the folder that setup.sh of the peers filled; models are taken from there
#   PEER_SCRIPTS  the peers' benchmark scripts (default: ../shared/peers beside the checkout)
#   TANDEM        our program (default: build/release/tandem)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -z "${PEERS:-}" ]; then
  echo "run_peers.sh: PEERS is not set; give the folder that the peers' setup.sh filled" >&2
  exit 2
fi
export PEERS ROOT=$root
export PEER_SCRIPTS=${PEER_SCRIPTS:-$root/../shared/peers}
export TANDEM=${TANDEM:-$root/build/release/tandem}
exec python3 "$root/bench/peers/run.py" "$@"
