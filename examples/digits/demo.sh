#!/usr/bin/env bash
# usage: examples/digits/demo.sh [TC_EMIT [OUT]]
#
# Emits C for the handwritten-digit network of this folder, compiles it, lets the program recognise real pictures and
# shows one of the functions it is made of. Needs no Python: digits.onnx and the pictures are in the repository.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tool=${1:-$root/build/tc-emit}
out=${2:-$root/build/demo_digits}

shown=${out#"$PWD"/}
echo "+ tc-emit examples/digits/digits.onnx -o $shown"
"$tool" "$here/digits.onnx" --name digits -o "$out"
echo "+ make -s -C $shown"
make -s -C "$out"
echo
for digit in 3 5 8; do
  echo "A picture of a $digit, and what the emitted program says of it:"
  sed 's/^/    /' "$here/pictures/$digit/picture.txt"
  "$out/digits" --inputs "$here/pictures/$digit" --top 2 | sed 's/^/    /'
  echo
done
kernel=$(find "$out/kernels" -name 'conv*.c' | sort | head -n 1)
if [[ -n $kernel ]]; then
  echo "One function of it, kernels/$(basename "$kernel"):"
  echo
  cat "$kernel"
fi
