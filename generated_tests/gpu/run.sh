#!/usr/bin/env bash
# Builds, checks and times the bundle on a machine with an NVIDIA GPU.
# usage: run.sh [--results DIR] [--seconds S] [--peers] [--kernels NAME,NAME...] [--cpu]
# --cpu: through the packages' cuda_on_cpu, to try the script itself where there is no GPU.
set -euo pipefail
exec python3 "$(dirname "$0")/run.py" "$@"
