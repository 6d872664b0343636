#!/usr/bin/env bash
# From a bare machine to a trained model: installs what is missing, builds, fetches a small real model,
# makes the data, trains thirty steps, and names the report. Extra arguments go to `tandem train`,
# for example: bash scripts/quickstart.sh seed=2
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/bootstrap.sh
bash scripts/build.sh release
tandem=build/release/tandem
bash scripts/fetch_model.sh smollm2
if [ ! -f models/smollm2-135m-instruct/config.json ]; then
  "$tandem" convert models/SmolLM2-135M-Instruct.Q4_1.gguf models/smollm2-135m-instruct --dtype float32
fi
if [ ! -f data/arithmetic_val.jsonl ]; then
  mkdir -p data
  "$tandem" make-data arithmetic --train data/arithmetic.jsonl --validation data/arithmetic_val.jsonl
fi
exec "$tandem" train recipes/smollm2-arithmetic.yaml "$@"
