/* Goes on with a text: generate VOCABULARY [TEXT [TOKENS [TEMPERATURE]]]. Temperature 0, the default, takes the likeliest token. */
#define _POSIX_C_SOURCE 199309L
#include "decoder.h"
#include "vocabulary.h"
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
  const char *text = argc > 2 ? argv[2] : "Once upon a time";
  const int tokens = argc > 3 ? atoi(argv[3]) : 64;
  const double temperature = argc > 4 ? atof(argv[4]) : 0;
  static int64_t ids[PROMPT], mask[CONTEXT];
  static float logits[PROMPT * VOCABULARY];
  vocabulary words;
  const char *problem = argc > 1 ? vocabulary_open(&words, argv[1]) : "which file?";
  decoder model;
  decoder_status status;
  decoder_inputs in = {ids, mask, 0};
  const decoder_outputs out = {logits};
  double start, prompt = 0;
  if (problem == NULL && words.tokens != VOCABULARY) problem = "it is of another model";
  if (problem != NULL) return fprintf(stderr, "vocabulary: %s\n", problem), 1;
  in.seq = vocabulary_encode(&words, text, ids, PROMPT);
  if (in.seq < 1) return fprintf(stderr, "the text must have 1 to %d tokens of the vocabulary\n", PROMPT), 1;
  for (int k = 0; k < CONTEXT; k++) mask[k] = 1;  /* every token is seen */
  status = decoder_init(&model, NULL, 0, NULL, 0);
  printf("%s", text);
  start = now();
  const int64_t given = in.seq;
  for (int n = 0; n < tokens && status == DECODER_OK; n++) {
    status = decoder_run(&model, &in, &out);  /* the caches grow by in.seq */
    if (status != DECODER_OK) break;
    if (n == 0) prompt = now() - start, start = now();
    ids[0] = choose(logits + (in.seq - 1) * VOCABULARY, temperature);
    fwrite(words.text[ids[0]], 1, words.length[ids[0]], stdout);
    in.seq = 1;
  }
  if (status != DECODER_OK) printf("\n%s", decoder_strerror(status));
  printf("\n%.0f tokens of the text a second, then %.0f\n", (double)given / prompt, (tokens - 1) / (now() - start));
  decoder_free(&model);
  vocabulary_close(&words);
  return status == DECODER_OK ? 0 : 1;
}
