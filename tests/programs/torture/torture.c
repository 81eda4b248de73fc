/* torture MODE [PLUG-IN]: rounds until SIGTERM, then `MODE: N rounds, W wrong, gs BASE`. */
#define _GNU_SOURCE
#include "torture.h"
#include <asm/prctl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile sig_atomic_t stop;
unsigned expected[SEEDS];
static const char *plug_in;

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

/* Loads the plug-in, computes with it, unloads it. */
unsigned long loading(unsigned long *rounds) {
  unsigned long wrong = 0;
  for (unsigned seed = 0; !stop; seed = (seed + 1) % SEEDS, ++*rounds) {
    void *handle = dlopen(plug_in, RTLD_NOW | RTLD_LOCAL);
    unsigned (*its_work)(unsigned) = NULL;
    if (handle)
      *(void **)&its_work = dlsym(handle, "work");
    if (!its_work) {
      wrong++;
      continue;
    }
    for (unsigned i = 0; i < 20; i++)
      wrong += its_work(seed) != expected[seed];
    wrong += work(seed) != expected[seed];
    dlclose(handle);
  }
  return wrong;
}

static const struct {
  const char *name;
  mode *run;
} modes[] = {{"spinning", spinning},       {"sleeping", sleeping},   {"waiting", waiting},
             {"forking", forking},         {"raw_cloning", raw_cloning}, {"threading", threading},
             {"signalling", signalling},   {"loading", loading}};

int main(int argc, char **argv) {
  mode *run = NULL;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (argc > 1 && !strcmp(argv[1], modes[i].name))
      run = modes[i].run;
  if (!run || (run == loading && argc < 3)) {
    fputs("usage: torture MODE [PLUG-IN]\n", stderr);
    return 2;
  }
  plug_in = argv[argc - 1];
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, NULL);
  for (unsigned seed = 0; seed < SEEDS; seed++)
    expected[seed] = work(seed);
  const char *path = getenv("READY_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);

  unsigned long rounds = 0, wrong = run(&rounds), gs = 0;
  syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
  printf("%s: %lu rounds, %lu wrong, gs %#lx\n", argv[1], rounds, wrong, gs);
  return wrong != 0 || rounds == 0;
}
