/* Waits for stdin to close behind a seccomp filter: argv[1] names what it kills the process for. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void install(unsigned number, int argument, unsigned bits) {
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, bits, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(3);
}

int main(int argc, char **argv) {
	char c;
	(void)argc;
	puts("ready");
	fflush(stdout);
	if (!strcmp(argv[1], "memfd_create"))
		install(SYS_memfd_create, 0, 0);
	else if (!strcmp(argv[1], "mmap_exec"))
		install(SYS_mmap, 2, PROT_EXEC);
	else if (!strcmp(argv[1], "munmap"))
		install(SYS_munmap, 0, 0);
	else if (!strcmp(argv[1], "close_high"))
		install(SYS_close, 0, 1000);
	if (write(1, "filtered\n", 9) != 9 || read(0, &c, 1) != 0)
		return 4;
	return write(1, "OK\n", 3) != 3;
}
