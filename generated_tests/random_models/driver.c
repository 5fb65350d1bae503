/* Runs the models of a batch, each in a process of its own: reads inputs.bin, fills outputs.bin, says how each ended. On a
 * GPU, with which a process needs longer to begin than models run, one process runs them from the K-th on (batch K), until
 * one fails.
 * A model runs twice, with its workspace full of ones and of zeros: both runs have to write the same bytes, all of them,
 * and nothing around them. The batch defines `models` before it includes this file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

enum { GUARD = 64, MOST = 64, SECONDS = 10 };
enum { FINE = 0, RETURNED = 100, UNEQUAL = 90, OUTSIDE = 91, UNWRITTEN_INPUT = 92 };

/* `bytes` of memory on 64 bytes, with guards around. */
static unsigned char *guarded(size_t bytes, const void *content, int fill)
{
  unsigned char *memory = (unsigned char *)aligned_alloc(64, (bytes + 2 * GUARD + 63) / 64 * 64);
  memset(memory, 0x5a, bytes + 2 * GUARD);
  if (content) memcpy(memory + GUARD, content, bytes);
  else memset(memory + GUARD, fill, bytes);
  return memory + GUARD;
}

static int untouched(const unsigned char *p, size_t bytes)
{
  for (int i = 0; i < GUARD; i++)
    if (p[i - GUARD] != 0x5a || p[bytes + (size_t)i] != 0x5a) return 0;
  return 1;
}

static int run(const batch_model *m, const unsigned char *inputs, unsigned char *outputs, int fill)
{
  void *in[MOST], *out[MOST];
  unsigned char *instance = guarded(m->instance_bytes, NULL, 0), *workspace = guarded(m->workspace_bytes, NULL, fill);
  const unsigned char *from = inputs + m->inputs_at;
  unsigned char *to = outputs + m->outputs_at;
  for (int i = 0; i < m->inputs; i++) {
    in[i] = guarded(m->input_bytes[i], from, 0);
    from += m->input_bytes[i];
  }
  for (int i = 0; i < m->outputs; i++) out[i] = guarded(m->output_room[i], NULL, fill);
  int status = m->init(instance, workspace, m->workspace_bytes);
  if (status == 0) status = m->run(instance, in, out);
  if (status != 0) return RETURNED + status;
  if (!untouched(workspace, m->workspace_bytes)) return OUTSIDE;
  from = inputs + m->inputs_at;
  for (int i = 0; i < m->inputs; i++) {
    if (!untouched((unsigned char *)in[i], m->input_bytes[i]) || memcmp(in[i], from, m->input_bytes[i]) != 0) return UNWRITTEN_INPUT;
    from += m->input_bytes[i];
  }
  for (int i = 0; i < m->outputs; i++) {
    if (!untouched((unsigned char *)out[i], m->output_room[i])) return OUTSIDE;
    if (fill == 0 && memcmp(to, out[i], m->output_bytes[i]) != 0) return UNEQUAL;
    memcpy(to, out[i], m->output_bytes[i]);
    to += m->output_bytes[i];
  }
  return FINE;
}

static void *mapped(const char *path, size_t bytes, int write)
{
  const int file = open(path, write ? O_RDWR : O_RDONLY);
  void *memory = mmap(NULL, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return memory;
}

static int run_twice(const batch_model *m, const unsigned char *inputs, unsigned char *outputs)
{
  alarm(SECONDS);
  const int status = run(m, inputs, outputs, 0xff);
  return status == FINE ? run(m, inputs, outputs, 0) : status;
}

int main(int argc, char **argv)
{
  const unsigned char *inputs = (const unsigned char *)mapped("inputs.bin", INPUT_BYTES, 0);
  unsigned char *outputs = (unsigned char *)mapped("outputs.bin", OUTPUT_BYTES, 1);
  for (size_t k = argc > 1 ? (size_t)atoi(argv[1]) : 0; k < sizeof models / sizeof *models; k++) {
#ifdef __CUDACC__
    const int status = run_twice(&models[k], inputs, outputs);
    printf("%s 0 %d\n", models[k].name, status);
    fflush(stdout);
    if (status != FINE) return 1;
    continue;
#endif
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const struct rlimit none = {0, 0};
      setrlimit(RLIMIT_CORE, &none);
      _exit(run_twice(&models[k], inputs, outputs));
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    printf("%s %d %d\n", models[k].name, WIFSIGNALED(ended) ? WTERMSIG(ended) : 0, WIFEXITED(ended) ? WEXITSTATUS(ended) : 0);
  }
  return 0;
}
