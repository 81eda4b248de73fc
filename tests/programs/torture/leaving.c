/* Large functions beside more memory than is searched for references while a process is stopped, and a
 * filter against userfaultfd, by which it is searched while it runs: what is copied of them has to stay. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY (32 << 20)
/* 64 KiB each. */
#define LARGE(n) void large_##n(void) { __asm__ volatile(".rept 6550\n\tmovabs $1, %%rax\n\t.endr" ::: "rax"); }
#define EIGHT(n) LARGE(n##0) LARGE(n##1) LARGE(n##2) LARGE(n##3) LARGE(n##4) LARGE(n##5) LARGE(n##6) LARGE(n##7)
EIGHT(0) EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4) EIGHT(5) EIGHT(6) EIGHT(7)
EIGHT(8) EIGHT(9) EIGHT(10) EIGHT(11) EIGHT(12) EIGHT(13) EIGHT(14) EIGHT(15)

static int forbid_userfaultfd(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(void) {
  if (forbid_userfaultfd())
    return 2;
  char *memory = malloc(MEMORY);
  if (!memory)
    return 1;
  memset(memory, 1, MEMORY);
  const char *path = getenv("READY_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);
  for (;;)
    pause();
}
