#!/usr/bin/env bash
# Installs what Tandem is built from, one line a step. Idempotent: what is there is skipped.
#   system packages by apt (needs root), LibTorch from its PyPI wheel into .deps/
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build ccache mold git ca-certificates
  libboost1.81-dev libcereal-dev libfmt-dev doctest-dev libcli11-dev nlohmann-json3-dev
  libyaml-cpp-dev libpcre2-dev libutf8proc-dev zlib1g-dev
  python3 python3-venv clang-format
)
# The runtime and CUPTI are what libtorch_cpu of the wheel links; no GPU is needed for them.
wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)

say() { printf 'bootstrap: %s\n' "$*"; }

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  say "system packages: all there"
elif ! command -v apt-get >/dev/null; then
  say "no apt-get here; install the equivalents of: ${missing[*]}" >&2
  exit 3
elif [ "$(id -u)" -ne 0 ]; then
  say "not root; run this once: sudo apt-get install ${missing[*]}" >&2
  exit 3
else
  say "system packages: installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

if [ -n "${LIBTORCH_ROOT:-}" ]; then
  say "LibTorch: LIBTORCH_ROOT=$LIBTORCH_ROOT"
  exit 0
fi
stamp=".deps/torch.stamp"
wanted="${wheels[*]}"
if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
  wanted="${wheels[0]} with CUDA"
fi
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
  say "LibTorch: .deps has $wanted"
  exit 0
fi
say "LibTorch: installing $wanted into .deps (0.55 GB to fetch, 1.3 GB on disk)"
mkdir -p .deps
[ -x .deps/venv/bin/pip ] || python3 -m venv .deps/venv
options=(--quiet --disable-pip-version-check --no-cache-dir)
if [[ "$wanted" == *CUDA ]]; then
  wheels=("${wheels[0]}")
else
  options+=(--no-deps)
fi
if ! .deps/venv/bin/pip install "${options[@]}" "${wheels[@]}"; then
  say "LibTorch cannot be installed (see pip's message above); run this again when the network is" \
    "there, or set LIBTORCH_ROOT to the torch folder of an installation" >&2
  exit 3
fi
echo "$wanted" > "$stamp"
say "LibTorch: done"
