/* usage: recognise PICTURE [DIGIT]: reads 8 lines of 8 pixels, two characters each, filters the picture and tells which digit it shows. With
 * DIGIT the exit code says whether it is that one. */
#include "digits.h"
#include "filter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_picture(const char *path, float picture[64])
{
  static const char shades[] = " .:-=+*#%@";
  FILE *f = fopen(path, "r");
  char line[64];
  int row = 0;
  if (!f) return 0;
  for (; row < 8 && fgets(line, sizeof line, f); row++)
    for (size_t k = 0; k < 8; k++) {
      const char *shade = 2 * k < strcspn(line, "\n") ? strchr(shades, line[2 * k]) : NULL;
      picture[row * 8 + k] = shade ? (float)(shade - shades) / 9 : 0;
    }
  fclose(f);
  return row == 8;
}

int main(int argc, char **argv)
{
  static float picture[64], filtered[64], probability[10];
  if (argc < 2 || !read_picture(argv[1], picture)) {
    fprintf(stderr, "usage: recognise PICTURE [DIGIT]\n");
    return 2;
  }
  digits network;
  if (!filter_picture(picture, filtered) || digits_init(&network, NULL, 0, NULL, 0) != DIGITS_OK) return 1;
  const digits_inputs in = {.image = filtered};
  const digits_outputs out = {.probability = probability};
  const digits_status status = digits_run(&network, &in, &out);
  digits_free(&network);
  if (status != DIGITS_OK) {
    fprintf(stderr, "digits: %s\n", digits_strerror(status));
    return 1;
  }
  int best = 0;
  for (int k = 1; k < 10; k++)
    if (probability[k] > probability[best]) best = k;
  printf("%d (%.3f)\n", best, (double)probability[best]);
  return argc > 2 && atoi(argv[2]) != best;
}
