/* libFuzzer target: the readers of the emitted program. The first byte says which. */
#define TC_STRINGS
#include "tc_files.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tc_tensor t;
  size_t entries, sum = 0;
  const unsigned char *file = data + 1, *entry;
  int failed = 1;
  if (size == 0) return 0;
  size--;
  t.data = NULL;
  switch (data[0] % 3) {
    case 0: failed = tc_npy_parse(&t, file, size, "x.npy"); break;
    case 1: failed = tc_pb_parse(&t, file, size, "x.pb"); break;
    default:
      entry = tc_zip_find(file, size, "x.npy", &entries);
      if (entry != NULL) failed = tc_npz_parse(&t, file, size, entry, "x.npz");
  }
  if (!failed) {
    const unsigned char *bytes = (const unsigned char *)t.data;
    for (size_t i = 0, n = tc_bytes(&t); i < n; i++) sum += bytes[i];
    free(t.data);
  }
  return sum == (size_t)-1;
}
