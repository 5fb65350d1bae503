/* How many threads tc_pool.c takes if nobody asks. */
#include <stdio.h>

int main(void)
{
  printf("%d\n", tc_pool_threads(0));
  return 0;
}
