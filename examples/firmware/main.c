/* Recognises ten pictures of digits. There is no operating system, no heap and no file: weights and pictures lie in flash, the
 * workspace is an array. */
#include "board.h"
#include "digits.h"

enum { PICTURES = 10, PIXELS = 8 * 8 };

/* Of pictures.S. */
extern const float pictures[PICTURES][PIXELS];

static _Alignas(DIGITS_ALIGN) unsigned char workspace[DIGITS_WORKSPACE_BYTES];

/* digits_init() calls malloc only where it is given no workspace; so that the linker takes no heap along: */
void *malloc(size_t bytes)
{
  (void)bytes;
  return NULL;
}
void free(void *memory) { (void)memory; }

static int recognise(const digits *model, const float *image)
{
  float probability[10];
  const digits_inputs in = {.image = image};
  const digits_outputs out = {.probability = probability};
  if (digits_run(model, &in, &out) != DIGITS_OK) return -1;
  int best = 0;
  for (int k = 1; k < 10; k++)
    if (probability[k] > probability[best]) best = k;
  return best;
}

int main(void)
{
  digits model;
  const digits_status status = digits_init(&model, NULL, 0, workspace, sizeof workspace);
  if (status != DIGITS_OK || !digits_check_weights(digits_weights())) {
    board_print(digits_strerror(status));
    return 1;
  }
  int right = 0;
  for (int k = 0; k < PICTURES; k++) {
    const int digit = recognise(&model, pictures[k]);
    board_print("picture of ");
    board_print_number((uint32_t)k);
    board_print(digit == k ? ": recognised\n" : ": taken for another\n");
    right += digit == k;
  }
  board_print("stack used: ");
  board_print_number((uint32_t)board_stack_used());
  board_print(" bytes\n");
  return right == PICTURES ? 0 : 1;
}
