// Plain C that looks at its own stack: every walk must see as many frames. Built without frame pointers.
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static volatile sig_atomic_t stop;
static int frames;

KEPT int innermost(int n)
{
	void *addresses[64];
	frames = backtrace(addresses, 64);
	return n + frames;
}
KEPT int inner(int n)
{
	return innermost(n + 1) * 3;
}
KEPT int outer(int n)
{
	return inner(n + 2) - 1;
}

static void ends(int signal)
{
	(void)signal;
	stop = 1;
}

int main(void)
{
	long rounds = 0, wrong = 0;
	signal(SIGTERM, ends);
	outer(0);
	int expected = frames;
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	for (; !stop; rounds++) {
		outer((int)rounds);
		wrong += frames != expected;
	}
	printf("%ld rounds, %ld wrong\n", rounds, wrong);
	return wrong != 0 || expected < 4;
}
