/* A program at a device's egress that ends the list of programs there (TCX_PASS), before all that are there.
 * passes DEVICE COMMAND...: while the command runs. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of linux/bpf.h since 6.6. */
enum { TCX_PASS = 0, TCX_EGRESS = 47, BEFORE = 8 };

struct tcx_link {
	__u32 program, device, type, flags, relative, unused;
	__u64 revision;
};

int main(int argc, char **argv)
{
	struct bpf_insn passes[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = TCX_PASS},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr load;
	struct tcx_link attach = {.type = TCX_EGRESS, .flags = BEFORE};
	int link;

	if (argc < 3)
		return 2;
	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	load.insns = (__u64)passes;
	load.insn_cnt = 2;
	load.license = (__u64) "GPL";
	attach.program = syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load));
	attach.device = if_nametoindex(argv[1]);
	link = syscall(SYS_bpf, BPF_LINK_CREATE, &attach, sizeof(attach));
	if (link < 0 || fcntl(link, F_SETFD, 0)) {
		perror(argv[1]);
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 2;
}
