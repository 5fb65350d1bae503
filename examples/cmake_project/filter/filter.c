#include "filter.h"
#include "contrast.h"

int filter_picture(const float *picture, float *filtered)
{
  contrast model;
  if (contrast_init(&model, NULL, 0, NULL, 0) != CONTRAST_OK) return 0;
  const contrast_inputs in = {.picture = picture};
  const contrast_outputs out = {.filtered = filtered};
  const int done = contrast_run(&model, &in, &out) == CONTRAST_OK;
  contrast_free(&model);
  return done;
}
