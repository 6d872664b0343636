#!/usr/bin/env bash
# Configures and builds everything: build.sh [PRESET]  (default release).
set -euo pipefail
cd "$(dirname "$0")/.."
preset="${1:-release}"
cmake --preset "$preset" --log-level=WARNING
cmake --build --preset "$preset"
