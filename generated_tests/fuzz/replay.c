/* Runs a libFuzzer target on the files that are named, without a fuzzer. */
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
  static uint8_t data[1 << 20];
  for (int k = 1; k < argc; k++) {
    FILE *f = fopen(argv[k], "rb");
    if (f == NULL) return 2;
    LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, f));
    fclose(f);
  }
  return argc > 1 ? 0 : 2;
}
