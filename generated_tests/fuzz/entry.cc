// libFuzzer's entry points for the target that TC_FUZZ_TARGET names.
#include "generated_tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TC_FUZZ_TARGET(data, size);
  return 0;
}

#ifdef TC_FUZZ_FIELDS  // half of the changes keep the encoding of binary models right
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (size < 2 || data[0] % 3 != 0 || seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  return 1 + tc::fuzz::change_field(data + 1, size - 1, most - 1, seed);
}
#endif
