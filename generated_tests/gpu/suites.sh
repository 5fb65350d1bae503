#!/usr/bin/env bash
# The suites of small models, built by nvcc and run on this machine's GPU, against their references.
# usage: suites.sh [--tool DIR/tc-emit] [--arch sm_90] [--seconds S] [--logs DIR] [onnx|differential|random]...
# A suite is cut off after S seconds; what it found until then is in its log.
set -uo pipefail
cd "$(dirname "$0")/../.."
tool=build/tc-emit arch=sm_90 seconds=200 logs=build/gpu_logs suites=() failed=0
while (($# > 0)); do
  case $1 in
    --tool) tool=$2; shift ;;
    --arch) arch=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    --logs) logs=$2; shift ;;
    *) suites+=("$1") ;;
  esac
  shift
done
if ((${#suites[@]} == 0)); then suites=(onnx differential random); fi
mkdir -p "$logs"
export TC_TEST_GPU=$arch TC_TEST_NO_CACHE=1 PYTHONUNBUFFERED=1

# run_suite NAME FILE [OPTION]...
run_suite() {
  timeout --signal INT "$seconds" python3 "generated_tests/$2" --tool "$tool" "${@:3}" > "$logs/$1.log" 2>&1 || failed=1
  echo "$1: $(tail -n 1 "$logs/$1.log")"
}

for suite in "${suites[@]}"; do
  case $suite in
    onnx) run_suite onnx onnx_suite/run.py --target cuda --emit-flags="--arch $arch" ;;
    differential) run_suite differential differential/run.py --cpus cuda ;;
    random) run_suite random random_models/run.py --configs "cuda-$arch" --seed 1 --count 1600 ;;
    *) echo "there is no suite $suite" >&2; exit 2 ;;
  esac
done
exit "$failed"
