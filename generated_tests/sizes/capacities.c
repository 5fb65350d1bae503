/* A package with a size that has no upper bound (models.rows): what NAME_workspace_bytes says is enough, and not less; an instance
 * takes the sizes that it was made for; each row is computed alike whatever the size. */
#include "endless.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      printf("line %d: %s\n", __LINE__, #condition); \
      return 1; \
    } \
  } while (0)

enum { kMost = 300, kColumns = 33, kClasses = 16 };
static float x[kMost * kColumns], want[kMost * kClasses];

/* Runs `rows` rows on an instance for `room`. The workspace lies at the end of its allocation, which sanitizers guard. */
static int run(int64_t room, int64_t rows)
{
  const endless_sizes sizes = {.batch = room};
  const size_t bytes = endless_workspace_bytes(&sizes);
  endless m;
  unsigned char *memory;
  float *y = (float *)malloc((size_t)rows * kClasses * sizeof *y), *mean = (float *)malloc((size_t)rows * sizeof *mean);
  CHECK(bytes > 0 && bytes % ENDLESS_ALIGN == 0);
  memory = (unsigned char *)aligned_alloc(ENDLESS_ALIGN, bytes);
  CHECK(endless_init(&m, &sizes, NULL, 0, memory, bytes - 1) == ENDLESS_E_ARG);
  CHECK(endless_init(&m, &sizes, NULL, 0, memory, bytes) == ENDLESS_OK);
  memset(memory, 0xff, bytes); /* NaN */
  {
    const endless_inputs in = {.x = x, .batch = rows}, more = {.x = x, .batch = room + 1}, none = {.x = x, .batch = 0};
    const endless_outputs out = {.softmax4 = y, .reducemax5 = mean};
    CHECK(endless_run(&m, &more, &out) == ENDLESS_E_ARG);
    CHECK(endless_run(&m, &none, &out) == ENDLESS_E_ARG);
    CHECK(endless_run(&m, &in, &out) == ENDLESS_OK);
  }
  if (room == kMost) memcpy(want, y, sizeof want);
  CHECK(memcmp(want, y, (size_t)rows * kClasses * sizeof *y) == 0);
  endless_free(&m);
  free(memory);
  free(y);
  free(mean);
  return 0;
}

int main(void)
{
  const endless_sizes none = {.batch = 0}, vast = {.batch = INT64_MAX}, large = {.batch = 100000000};
  endless m;
  for (int i = 0; i < kMost * kColumns; i++) x[i] = (float)(i * 7 % 23) / 23.0f - 0.4f;
  CHECK(endless_workspace_bytes(NULL) == 0 && endless_workspace_bytes(&none) == 0 && endless_workspace_bytes(&vast) == 0);
  CHECK(endless_init(&m, &vast, NULL, 0, NULL, 0) == ENDLESS_E_ARG && endless_init(&m, NULL, NULL, 0, NULL, 0) == ENDLESS_E_ARG);
  if (sizeof(size_t) == 8) CHECK(endless_workspace_bytes(&large) > 100000000 * (size_t)200);
  if (run(kMost, kMost)) return 1;
  for (int64_t room = 1; room < 80; room += 1 + room / 9)
    for (int64_t rows = 1; rows <= room; rows += 1 + room / 7)
      if (run(room, rows)) return 1;
  puts("as it should be");
  return 0;
}
