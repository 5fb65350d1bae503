// Planted bugs, one kernel each: `bugs NAME` runs one. check.py says what has to find it; a comment "here" marks the lines
// one of which a report has to name. Those that end in _right are correct and must pass.
#include "samples/sample.h"
#include "tc_rt.h"

constexpr int kElements = 1024;

#define KERNEL(NAME) static __global__ void NAME(float *y, const float *x)
#define INDEXES const int t = (int)threadIdx.x, i = (int)blockIdx.x * 256 + t

KERNEL(barrier_in_branch)
{
  __shared__ float tile[256];
  INDEXES;
  tile[t] = x[i];
  if (t < 128) __syncthreads();  // here
  y[i] = tile[t];
}
KERNEL(early_return)
{
  __shared__ float tile[256];
  INDEXES;
  if (t >= 200) return;
  tile[t] = x[i];
  __syncthreads();  // here
  y[i] = tile[199 - t];
}
KERNEL(two_barriers)
{
  INDEXES;
  if (t < 128)
    __syncthreads();  // here
  else
    __syncthreads();  // here
  y[i] = x[i];
}
KERNEL(half_warp)
{
  INDEXES;
  float v = x[i];
  if (t % 32 < 16) v += tc_shuffle_xor(v, 1);  // here
  y[i] = v;
}
KERNEL(half_warp_in_a_reduction)
{
  INDEXES;
  float v = x[i];
  if (t % 32 < 16) v = tc_warp_add(v);  // here
  y[i] = v;
}
KERNEL(misaligned_vector)
{
  INDEXES;
  float v[4];
  tc_load4(v, x + t + 1);  // here
  y[i] = v[0];
}
KERNEL(misaligned_cast)
{
  INDEXES;
  const float4 *v = reinterpret_cast<const float4 *>(x + t + 1);
  y[i] = v->x;  // here
}
KERNEL(past_the_end)
{
  INDEXES;
  y[i] = x[i] + x[i + 1];  // here
}
KERNEL(host_pointer)  // main passes one
{
  INDEXES;
  y[i] = x[i];  // here
}
KERNEL(two_blocks_one_element)
{
  INDEXES;
  y[i % 512] = x[i];  // here
}
KERNEL(block_reads_what_another_updates)
{
  INDEXES;
  y[i] = y[(i + 256) % kElements] + x[i];  // here
}
KERNEL(same_value_twice)
{
  __shared__ float first;
  INDEXES;
  if (t < 2) first = x[0];  // here
  __syncthreads();
  y[i] = x[i] + first;
}
KERNEL(no_barrier)
{
  __shared__ float tile[256];
  INDEXES;
  tile[t] = x[i];  // here
  y[i] = tile[255 - t];  // here
}
KERNEL(barrier_right)
{
  __shared__ float tile[256];
  INDEXES;
  tile[t] = x[i];
  __syncthreads();
  y[i] = tile[255 - t];
}
KERNEL(no_syncwarp)
{
  __shared__ float tile[256];
  INDEXES;
  tile[t] = x[i];  // here
  y[i] = tile[t ^ 1];  // here
}
KERNEL(syncwarp_right)
{
  __shared__ float tile[256];
  INDEXES;
  tile[t] = x[i];
  __syncwarp();
  y[i] = tile[t ^ 1];
  __syncwarp();
  tile[t] = tile[t] + 1.0f;  // its neighbour's read is over
  __syncwarp();
  y[i] += tile[t ^ 3];
}
KERNEL(cp_async_without_wait)
{
  __shared__ __align__(16) float tile[256];
  INDEXES;
  if (t < 64) tc_cp_async16(&tile[4 * t], x + (int)blockIdx.x * 256 + 4 * t);
  tc_cp_async_commit();
  __syncthreads();
  y[i] = tile[t];  // here
}
KERNEL(cp_async_over_readers)
{
  __shared__ __align__(16) float tile[256];
  INDEXES;
  tile[t] = x[i];
  __syncthreads();
  y[i] = tile[255 - t];  // here
  if (t < 64) tc_cp_async16(&tile[4 * t], x + 4 * t);  // here
  tc_cp_async_commit();
  tc_cp_async_wait<0>();
  __syncthreads();
  y[i] += tile[t];
}
KERNEL(uninitialised_shared)
{
  __shared__ float tile[256];
  INDEXES;
  if (t < 255) tile[t] = x[i];
  __syncthreads();
  y[i] = tile[t];  // here
}
KERNEL(uninitialised_dynamic)
{
  float *tile = reinterpret_cast<float *>(tc_dynamic_shared());
  INDEXES;
  if (t > 0) tile[t] = x[i];
  __syncthreads();
  y[i] = tile[t];  // here
}
KERNEL(past_dynamic)
{
  float *tile = reinterpret_cast<float *>(tc_dynamic_shared());
  INDEXES;
  tile[t + 1] = x[i];  // here
  __syncthreads();
  y[i] = tile[t + 1];  // here
}
KERNEL(past_an_array)
{
  __shared__ float tile[2][128];
  INDEXES;
  tile[t / 128][t % 128] = x[i];
  __syncthreads();
  y[i] = tile[0][t];  // here
}
// Two arrays on the same bytes, one after the other.
#define TWO_ARRAYS(BETWEEN, FILL)                                                       \
  {                                                                                     \
    __shared__ __align__(16) unsigned char shared[1024];                                \
    INDEXES;                                                                            \
    TC_SHARED_VIEW(first, float[256], shared);                                          \
    first[t] = x[i];                                                                    \
    __syncthreads();                                                                    \
    const float other = first[255 - t];                                                 \
    BETWEEN;                                                                            \
    TC_SHARED_VIEW(second, float[4][64], shared);                                       \
    if (t < FILL) second[t / 64][t % 64] = other;                                       \
    __syncthreads();                                                                    \
    y[i] = second[t % 4][t / 4];                                                        \
  }
KERNEL(arrays_handed_over_right) TWO_ARRAYS(__syncthreads(), 256)
KERNEL(array_begins_without_barrier) TWO_ARRAYS((void)0, 256)  // here
KERNEL(array_holds_what_another_left) TWO_ARRAYS(__syncthreads(), 255)  // here
KERNEL(past_a_view)
{
  __shared__ __align__(16) unsigned char shared[1024];
  INDEXES;
  TC_SHARED_VIEW(tile, float[2][128], shared);
  tile[t / 128][t % 128] = x[i];
  __syncthreads();
  y[i] = tile[0][t];  // here
}
KERNEL(uninitialised_device)
{
  INDEXES;
  y[i] = x[i] + y[i];  // here
}
KERNEL(atomic_and_plain)
{
  INDEXES;
  if (t == 0) y[0] = x[0];  // here
  atomicAdd(&y[1], x[i]);   // here
  if (t == 1) y[1] = x[1];  // here
}
KERNEL(local_memory)
{
  __shared__ const float *pointer;
  INDEXES;
  float own[2] = {x[i], x[i] + 1};
  if (t == 0) pointer = own;
  __syncthreads();
  y[i] = pointer[t % 2] + own[t % 2];  // here
}
static __constant__ float constants[2] = {1, 2};
KERNEL(constants_right)
{
  const float table[4] = {1, 2, 3, 4};
  INDEXES;
  y[i] = x[i] * constants[t % 2] + table[t % 4];
}
KERNEL(bad_index_right)  // any number of threads may report one
{
  INDEXES;
  y[i] = x[tc_index((int64_t)i - 2000, kElements, reinterpret_cast<int32_t *>(y + kElements))];
}
KERNEL(deadlock)
{
  INDEXES;
  if (t < 16)
    __syncwarp();  // here
  else
    __syncthreads();
  y[i] = x[i];
}

struct Bug {
  const char *name;
  void (*run)(float *y, const float *x);
};
#define BUG(NAME) {#NAME, [](float *y, const float *x) { CALL(tc_launch(NAME, dim3(kElements / 256), dim3(256), 1024, nullptr, y, x)); }}
static const Bug kBugs[] = {
    BUG(barrier_in_branch), BUG(early_return), BUG(two_barriers), BUG(half_warp), BUG(half_warp_in_a_reduction), BUG(misaligned_vector), BUG(misaligned_cast),
    BUG(past_the_end), BUG(host_pointer), BUG(two_blocks_one_element), BUG(block_reads_what_another_updates), BUG(same_value_twice),
    BUG(no_barrier), BUG(barrier_right), BUG(no_syncwarp), BUG(syncwarp_right), BUG(cp_async_without_wait), BUG(cp_async_over_readers),
    BUG(uninitialised_shared), BUG(uninitialised_dynamic), BUG(past_dynamic), BUG(past_an_array), BUG(past_a_view), BUG(arrays_handed_over_right),
    BUG(array_begins_without_barrier), BUG(array_holds_what_another_left), BUG(uninitialised_device), BUG(atomic_and_plain),
    BUG(local_memory), BUG(constants_right), BUG(bad_index_right), BUG(deadlock),
};

int main(int argc, char **argv)
{
  std::vector<float> x(kElements + 16);
  for (float &e : x) e = random_float();
  for (const Bug &bug : kBugs) {
    if (argc < 2 || strcmp(bug.name, argv[1]) != 0) continue;
    const float *dx = upload(std::vector<float>(x.begin(), x.begin() + kElements));
    float *dy = device_memory<float>(kElements + 1);
    if (strcmp(bug.name, "block_reads_what_another_updates") == 0 || strcmp(bug.name, "atomic_and_plain") == 0) CALL(cudaMemset(dy, 0, 4 * kElements));
    CALL(cudaMemset(dy + kElements, 0, 4));
    bug.run(dy, strcmp(bug.name, "host_pointer") == 0 ? x.data() : dx);
    float sum = 0;
    for (float e : download(dy, kElements)) sum += e;
    printf("ran to the end, sum %g\n", sum);
    return 0;
  }
  return 2;
}
