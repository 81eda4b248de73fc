/* A thread of the lowest priority gets no processor, since a program of the highest one takes the same: from the first
 * SIGUSR1 on, until FILE exists. Each later SIGUSR1 is answered by the main thread.
 * starved FILE */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile unsigned long done;

__attribute__((noinline)) void work(void)
{
	done++;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

/* All but the first processor are the main thread's, and the recorder's. */
static void to_first_processor(void)
{
	cpu_set_t allowed, one;
	int first = 0;

	must(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
	while (!CPU_ISSET(first, &allowed))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	must(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
}

static void *works(void *ignored)
{
	struct sched_param none = {0};

	to_first_processor();
	must(sched_setscheduler(0, SCHED_IDLE, &none) == 0, "sched_setscheduler");
	for (;;)
		work();
	return ignored;
}

static void take_its_processor(const char *until)
{
	int runs[2];
	char byte;

	must(pipe(runs) == 0, "pipe");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Whatever becomes of the test. */
		alarm(100);
		to_first_processor();
		must(setpriority(PRIO_PROCESS, 0, -20) == 0, "setpriority");
		must(write(runs[1], "r", 1) == 1, "write");
		while (access(until, F_OK) != 0)
			;
		_exit(0);
	}
	must(read(runs[0], &byte, 1) == 1, "read");
}

int main(int argc, char **argv)
{
	sigset_t asks;
	pthread_t worker;
	int signal;

	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&asks);
	sigaddset(&asks, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &asks, NULL);
	must(pthread_create(&worker, NULL, works, NULL) == 0, "pthread_create");
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	must(sigwait(&asks, &signal) == 0, "sigwait");
	take_its_processor(argv[1]);
	for (int round = 1;; round++) {
		printf("round %d\n", round);
		must(sigwait(&asks, &signal) == 0, "sigwait");
	}
}
