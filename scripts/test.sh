#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests; the last lines are CTest's summary.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/bootstrap.sh
if [ "${TANDEM_SKIP_SANITIZERS:-0}" != 1 ]; then
  # The Torch-free parts under address and undefined-behaviour sanitizers.
  bash scripts/build.sh dev
  ctest --preset dev -j "$(nproc)" --quiet --output-log build/dev/ctest.log \
    || { cat build/dev/ctest.log; exit 1; }
fi
bash scripts/build.sh ci
ctest --preset ci -j "$(nproc)"
