/* A coroutine that two threads run in turn: each call of `moving` begins on one and ends on the other; those of
 * `staying` end where they begin. A line of input says how many calls; the answer is that number. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void switch_to(void **from, void *to);
asm(".globl switch_to\n.type switch_to,@function\n"
    "switch_to: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\nret\n"
    ".size switch_to,.-switch_to\n");

enum { STACK = 1 << 16 };
static void *coroutine, *volatile resumer;
static volatile unsigned long steps, called, wanted;
static pthread_barrier_t begin, end;

__attribute__((noinline)) static void leave(void) { switch_to(&coroutine, resumer); }
__attribute__((noinline)) void staying(void) { steps++; }
__attribute__((noinline)) void moving(void)
{
	staying();
	leave();
	steps++;
	asm volatile("");
}
static void calls(void)
{
	for (;;) {
		if (called == wanted)
			leave();
		moving();
		called++;
	}
}
__attribute__((noinline)) static void resume(void) { switch_to((void **)&resumer, coroutine); }
static void *other(void *unused)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		resume();
		pthread_barrier_wait(&end);
	}
	return unused;
}

int main(void)
{
	char line[32], *stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void **top = (void **)(stack + STACK - 64);
	*--top = 0;
	*--top = (void *)calls;
	top -= 6;
	memset(top, 0, 48);
	coroutine = top;
	pthread_barrier_init(&begin, 0, 2);
	pthread_barrier_init(&end, 0, 2);
	pthread_t thread;
	pthread_create(&thread, 0, other, 0);
	while (fgets(line, sizeof line, stdin)) {
		wanted = called + strtoul(line, 0, 10);
		for (unsigned turn = 0; called < wanted; turn++) {
			if (turn % 2) {
				pthread_barrier_wait(&begin);
				pthread_barrier_wait(&end);
			} else {
				resume();
			}
		}
		printf("%lu\n", strtoul(line, 0, 10));
		fflush(stdout);
	}
	return steps != 2 * called;
}
