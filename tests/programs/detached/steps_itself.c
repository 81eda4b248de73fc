/* A thread that has set its own trap flag and counts its steps. Each SIGUSR1 is answered with a line. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long steps, done;
static volatile sig_atomic_t asked;

__attribute__((noinline)) void work(void)
{
	done++;
}

static void stepped(int signal)
{
	(void)signal;
	steps++;
}

static void ask(int signal)
{
	(void)signal;
	asked = 1;
}

int main(void)
{
	unsigned long before = 0;

	signal(SIGTRAP, stepped);
	signal(SIGUSR1, ask);
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "memory", "cc");
	for (int round = 1;;) {
		char line[32];

		work();
		if (!asked)
			continue;
		asked = 0;
		if (steps == before)
			return 3;
		before = steps;
		if (write(1, line, snprintf(line, sizeof(line), "round %d\n", round++)) < 0)
			return 4;
	}
}
