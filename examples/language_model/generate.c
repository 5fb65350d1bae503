/* Goes on with a text: generate [TEXT [TOKENS [TEMPERATURE]]]. Temperature 0, the default, takes the likeliest character. */
#define _POSIX_C_SOURCE 199309L
#include "decoder.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VOCABULARY = 96, PROMPT = 128, CONTEXT = 1024 };

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t choose(const float *logits, double temperature)
{
  double sum = 0, weight[VOCABULARY], at;
  int64_t best = 0;
  for (int64_t k = 1; k < VOCABULARY; k++)
    if (logits[k] > logits[best]) best = k;
  if (temperature <= 0) return best;
  for (int k = 0; k < VOCABULARY; k++) sum += weight[k] = exp((logits[k] - logits[best]) / temperature);
  at = sum * rand() / ((double)RAND_MAX + 1);
  for (int64_t k = 0; k < VOCABULARY; k++)
    if ((at -= weight[k]) < 0) return k;
  return best;
}

int main(int argc, char **argv)
{
  const char *text = argc > 1 ? argv[1] : "Once upon a time";
  const int tokens = argc > 2 ? atoi(argv[2]) : 64;
  const double temperature = argc > 3 ? atof(argv[3]) : 0;
  static int64_t ids[PROMPT], mask[CONTEXT];
  static float logits[PROMPT * VOCABULARY];
  decoder model;
  decoder_status status = decoder_init(&model, NULL, 0, NULL, 0);
  decoder_inputs in = {ids, mask, (int64_t)strlen(text)};
  const decoder_outputs out = {logits};
  double start = now(), prompt = 0;
  if (in.seq < 1 || in.seq > PROMPT) return fprintf(stderr, "the text must have 1 to %d characters\n", PROMPT), 1;
  for (int k = 0; k < CONTEXT; k++) mask[k] = 1;  /* every token is seen */
  for (int64_t k = 0; k < in.seq; k++) ids[k] = text[k] >= 32 && text[k] < 127 ? text[k] - 32 : 0;
  printf("%s", text);
  for (int n = 0; n < tokens && status == DECODER_OK; n++) {
    status = decoder_run(&model, &in, &out);  /* the caches grow by in.seq */
    if (status != DECODER_OK) break;
    if (n == 0) prompt = now() - start, start = now();
    ids[0] = choose(logits + (in.seq - 1) * VOCABULARY, temperature);
    putchar((int)ids[0] + 32);
    in.seq = 1;
  }
  if (status != DECODER_OK) printf("\n%s", decoder_strerror(status));
  printf("\n%.0f characters of the text a second, then %.0f\n", (double)strlen(text) / prompt, (tokens - 1) / (now() - start));
  decoder_free(&model);
  return status == DECODER_OK ? 0 : 1;
}
