/* Text as tokens and tokens as text: reads what vocabulary.py writes. A text is not split at words, numbers and signs before pairs are
 * merged; where a tokenizer says that it is, a text may have other tokens than there, which spell the same. */
#ifndef VOCABULARY_H
#define VOCABULARY_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t tokens, merges, leading_space;
  const unsigned char **text; /* of each token */
  uint32_t *length;
  uint32_t (*merge)[4]; /* left, right, result, rank: sorted by the first two */
  unsigned char *file;
} vocabulary;

/* NULL, or what is wrong with the file. */
const char *vocabulary_open(vocabulary *v, const char *path);
void vocabulary_close(vocabulary *v);
/* The ids of a text; -1 where there are more than `most`, or the vocabulary has no token for a byte. */
int64_t vocabulary_encode(const vocabulary *v, const char *text, int64_t *ids, int64_t most);

#endif
