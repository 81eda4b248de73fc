/* What a send was called with: the kernel does not show it to a program that leads messages. */
#pragma once
#include "calls.bpf.c"

/* Where the registers of a thread's system call are, from the beginning of its kernel stack; 0: not known. That depends on
 * how the kernel was built. */
u64 registers_at SEC(".data.registers");

/* include/linux/socket.h: TCP alone sends urgent bytes, and knows whether a connection is open already. */
#define MSG_FASTOPEN 0x20000000
#define FLAGS_OF_TCP (MSG_OOB | MSG_FASTOPEN)

/* Kernels before 6.3 let no program subtract from a pointer: it becomes a number in memory. Asked before any socket joins. */
static u64 registers_of_one SEC(".data.registers");

static __always_inline void find_registers(struct task_struct *task)
{
	if (registers_at)
		return;
	*(volatile u64 *)&registers_of_one = (u64)bpf_task_pt_regs(task);
	registers_at = *(volatile u64 *)&registers_of_one - (u64)task->stack;
}

/* Those of a 32-bit program have other numbers, which mean nothing here that sends. */
static __always_inline u32 send_flags(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs;

	if (!registers_at)
		return 0;
	regs = task->stack + registers_at;
	switch (BPF_CORE_READ(regs, orig_ax)) {
	case NR_SENDTO:
	case NR_SENDMMSG:
		return BPF_CORE_READ(regs, r10);
	case NR_SENDMSG:
		return BPF_CORE_READ(regs, dx);
	}
	return 0;
}
