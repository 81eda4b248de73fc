/* Loads a socket filter and runs it over packets: in a map of one value of VALUE bytes.
 * In: count of instructions, instructions, count of values, values. Out: a word for each value.
 * Exit 1 with the verifier's words where the kernel refuses the program, 2 where bpf(2) fails. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VALUE 328

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof *attr);
}

static void need(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(2);
	}
}

static uint32_t number(void)
{
	uint32_t n;
	need(fread(&n, sizeof n, 1, stdin) == 1, "input");
	return n;
}

int main(void)
{
	static struct bpf_insn insns[8192];
	static char log[1 << 20];
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = VALUE, .max_entries = 1 };
	int map = bpf(BPF_MAP_CREATE, &attr);
	need(map >= 0, "BPF_MAP_CREATE");

	uint32_t count = number();
	need(count <= 8192 && fread(insns, sizeof *insns, count, stdin) == count, "instructions");
	for (uint32_t i = 0; i < count; i++)
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			insns[i].imm = map;
	memset(&attr, 0, sizeof attr);
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insn_cnt = count;
	attr.insns = (uintptr_t)insns;
	attr.license = (uintptr_t)"Dual MIT/GPL";
	int prog = bpf(BPF_PROG_LOAD, &attr);
	if (prog < 0) {
		attr.log_level = 1;
		attr.log_size = sizeof log;
		attr.log_buf = (uintptr_t)log;
		bpf(BPF_PROG_LOAD, &attr);
		size_t length = strlen(log);
		fprintf(stderr, "%s\n%s\n", strerror(errno), log + (length > 4000 ? length - 4000 : 0));
		return 1;
	}
	for (uint32_t left = number(); left; left--) {
		static char value[VALUE], frame[64];
		uint32_t key = 0;
		need(fread(value, VALUE, 1, stdin) == 1, "value");
		memset(&attr, 0, sizeof attr);
		attr.map_fd = map;
		attr.key = (uintptr_t)&key;
		attr.value = (uintptr_t)value;
		need(bpf(BPF_MAP_UPDATE_ELEM, &attr) == 0, "BPF_MAP_UPDATE_ELEM");
		memset(&attr, 0, sizeof attr);
		attr.test.prog_fd = prog;
		attr.test.data_in = (uintptr_t)frame;
		attr.test.data_size_in = sizeof frame;
		need(bpf(BPF_PROG_TEST_RUN, &attr) == 0, "BPF_PROG_TEST_RUN");
		need(fwrite(&attr.test.retval, 4, 1, stdout) == 1, "output");
	}
	return 0;
}
