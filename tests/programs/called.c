/* Calls `work` as often as each line of stdin says; at -1 it becomes `cat`. With the argument "no-tsc" its
   time stamp counter is switched off first. First line of stdout: offset of `work` in this file, and its address. */
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile long added = 1;

/* Without optimization it begins with `push %rbp`, one byte: what is behind it lies in the bytes the jump replaces. */
__attribute__((noinline)) long work(long i) {
  return 2 * i + added;
}

static int print_place(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  ElfW(Addr) at = (ElfW(Addr))work;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    ElfW(Addr) start = info->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_LOAD && at >= start && at < start + p->p_filesz)
      printf("%lu %lu\n", (unsigned long)(at - start + p->p_offset), (unsigned long)at);
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "no-tsc"))
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  /* Links musl's signal-return sequence into a static program, which an attach needs. */
  signal(SIGUSR2, SIG_IGN);
  dl_iterate_phdr(print_place, NULL);
  fflush(stdout);
  long calls;
  while (scanf("%ld", &calls) == 1) {
    if (calls < 0) {
      execlp("cat", "cat", NULL);
      return 1;
    }
    long right = 0;
    for (long i = 0; i < calls; i++)
      right += work(i) == 2 * i + 1;
    printf("%ld right\n", right);
    fflush(stdout);
  }
  return 0;
}
