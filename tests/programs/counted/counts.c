/* Calls whose counts are known. Commands on standard input, each answered with a line:
 *   run N       N times: outer (100 and its two calls of inner, 10 each), tail (5, ends in a jump to inner),
 *               chosen (3, ends in a computed jump to inner), deep (1 at each of 4 depths), apart (2, not counted)
 *   broken N    N calls during which the page of each event changes, as if the thread had lost its processor
 *   disturbed N N calls at whose begin the pages change between a counter and the second look at the lock
 *   stopped N   N calls while no event counts
 *   threads T   T threads that call outer until told to join
 *   tails T     the same with tail
 *   join        how often they did
 *   fork N      N calls of outer in a forked child
 *   child N     a forked child that calls outer N times, and again when it is told to go on
 *   reap        tells it, and how it ended
 *   sleep K N   N calls that sleep K times each; context switches of each as the kernel accounts them
 *   signals N   N children that a signal handler forks between calls of inner or in them, and that go on there; how many
 *               were killed by a signal
 *   apart N     the same, but each child goes on when its parent has gone on for some calls; then context switches of all
 *   spin K N    N calls of K turns, three instructions each
 *   drop        has no privileges from now on
 *   exec        becomes cat(1) */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#pragma weak counted_add
void counted_add(unsigned counter, uint64_t n);

static void add(uint64_t n)
{
	if (counted_add) {
		counted_add(0, n);
		counted_add(1, 2 * n);
	}
}

#pragma weak counted_meanwhile
extern void (*volatile counted_meanwhile)(void);

#define PART __attribute__((noinline, noclone))

PART void inner(void) { add(10); __asm__ volatile(""); }
PART void apart(void) { add(2); __asm__ volatile(""); }
PART void outer(void) { add(40); inner(); add(60); inner(); apart(); __asm__ volatile(""); }
PART void tail(void) { add(5); inner(); }
static void (*volatile ways[2])(void) = { inner, inner };
PART void chosen(int n) { add(3); ways[n & 1](); }
PART int deep(int n)
{
	int below = 0;
	add(1);
	if (n > 1)
		below = deep(n - 1);
	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

/* Pages of events that this process may write: emulated ones. */
static volatile uint32_t *pages[64];
static int pages_count;

static void find_pages(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long from, to;
	pages_count = 0;
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "memfd:hopscope-rings") && strstr(line, "rw-s") && !strstr(line, " 00000000 ")
		    && sscanf(line, "%lx-%lx", &from, &to) == 2)
			for (; from < to && pages_count < 64; from += 4096)
				pages[pages_count++] = (uint32_t *)from;
	fclose(maps);
}

#define LOCK 2
#define INDEX 3

/* By turns in the half of the lock that a record has in its element, and in the other alone. */
static void change_pages(void)
{
	static int turn;
	uint32_t by = turn++ % 2 ? 2 : 1 << 17;
	for (int i = 0; i < pages_count; i++)
		pages[i][LOCK] += by;
}

PART void broken(void) { add(1); change_pages(); add(1); }
PART void around(void) { add(1); broken(); add(1); }
PART void disturbed(void) { add(1); __asm__ volatile(""); }
PART void stopped(void) { add(1); __asm__ volatile(""); }

static void stopped_calls(long n)
{
	uint32_t index[64];
	for (int i = 0; i < pages_count; i++) {
		index[i] = pages[i][INDEX];
		pages[i][INDEX] = 0;
	}
	while (n--)
		stopped();
	for (int i = 0; i < pages_count; i++)
		pages[i][INDEX] = index[i];
}

static volatile int joining;
static pthread_t threads[64];
static long threads_count, calls;

static void *thread(void *called)
{
	struct timespec pause = { 0, 200000 };
	long own = 0;
	while (!joining) {
		((void (*)(void))called)();
		own++;
		nanosleep(&pause, NULL);
	}
	__atomic_add_fetch(&calls, own, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start_threads(long n, void (*called)(void))
{
	joining = 0;
	calls = 0;
	for (threads_count = 0; threads_count < n; threads_count++)
		pthread_create(&threads[threads_count], NULL, thread, (void *)called);
}

static long switches(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

PART void sleeper(long times)
{
	struct timespec pause = { 0, 50000 };
	for (long i = 0; i < times; i++)
		nanosleep(&pause, NULL);
}

PART void spinner(long turns)
{
	__asm__ volatile("1: nop\n dec %0\n jnz 1b" : "+r"(turns) : : "cc");
}

static void run(long n)
{
	for (long i = 0; i < n; i++) {
		outer();
		tail();
		chosen((int)i);
		deep(4);
	}
}

static volatile int is_child;
static volatile long forks, killed;

static void fork_here(int number)
{
	int status = 0;
	pid_t child;
	(void)number;
	if (is_child)
		return;
	child = fork();
	if (!child) {
		struct itimerval none = { { 0, 0 }, { 0, 0 } };
		is_child = 1;
		setitimer(ITIMER_REAL, &none, NULL);
		return;
	}
	while (waitpid(child, &status, 0) < 0)
		;
	forks++;
	killed += WIFSIGNALED(status);
}

static void fork_in_handlers(long n)
{
	struct sigaction action = { .sa_handler = fork_here, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 700 }, { 0, 700 } }, none = { { 0, 0 }, { 0, 0 } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (forks < n)
		for (int i = 0; i < 1000; i++) {
			spinner(1);
			if (is_child)
				_exit(0);
		}
	setitimer(ITIMER_REAL, &none, NULL);
	printf("%ld %ld\n", forks, killed);
	forks = killed = 0;
}

static int gate[2];
static volatile pid_t apart_child;

static void child_in_two_parts(long n)
{
	char byte;
	if (pipe(gate))
		abort();
	apart_child = fork();
	if (apart_child)
		return;
	run(n);
	if (read(gate[0], &byte, 1) != 1)
		_exit(1);
	run(n);
	_exit(0);
}

static int reap(void)
{
	int status = 0;
	if (write(gate[1], "", 1) != 1)
		abort();
	waitpid(apart_child, &status, 0);
	apart_child = 0;
	return status;
}

static void fork_apart(int number)
{
	char byte;
	(void)number;
	if (is_child || apart_child)
		return;
	apart_child = fork();
	if (!apart_child) {
		struct itimerval none = { { 0, 0 }, { 0, 0 } };
		is_child = 1;
		setitimer(ITIMER_REAL, &none, NULL);
		if (read(gate[0], &byte, 1) != 1)
			_exit(1);
	}
}

static void fork_and_go_on(long n)
{
	struct sigaction action = { .sa_handler = fork_apart, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 700 }, { 0, 700 } }, none = { { 0, 0 }, { 0, 0 } };
	long before = switches();
	if (pipe(gate))
		abort();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (forks < n) {
		int status = 0;
		for (int i = 0; i < 1000 && !apart_child; i++) {
			spinner(1);
			if (is_child)
				_exit(0);
		}
		if (!apart_child)
			continue;
		for (int i = 0; i < 20; i++)
			spinner(1);
		if (write(gate[1], "", 1) != 1)
			abort();
		while (waitpid(apart_child, &status, 0) < 0)
			;
		forks++;
		killed += WIFSIGNALED(status);
		apart_child = 0;
	}
	setitimer(ITIMER_REAL, &none, NULL);
	printf("%ld %ld %ld\n", forks, killed, switches() - before);
	forks = killed = 0;
}

int main(void)
{
	char line[128];
	const char *ready = getenv("READY_FILE");
	long n, k;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (ready)
		fclose(fopen(ready, "w"));
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "run %ld", &n) == 1) {
			run(n);
		} else if (sscanf(line, "broken %ld", &n) == 1) {
			find_pages();
			for (long i = 0; i < n; i++)
				around();
		} else if (sscanf(line, "disturbed %ld", &n) == 1) {
			find_pages();
			while (n--) {
				counted_meanwhile = change_pages;
				disturbed();
			}
		} else if (sscanf(line, "stopped %ld", &n) == 1) {
			find_pages();
			stopped_calls(n);
		} else if (sscanf(line, "threads %ld", &n) == 1) {
			start_threads(n, outer);
		} else if (sscanf(line, "tails %ld", &n) == 1) {
			start_threads(n, tail);
		} else if (!strncmp(line, "join", 4)) {
			joining = 1;
			while (threads_count)
				pthread_join(threads[--threads_count], NULL);
			printf("%ld\n", calls);
			continue;
		} else if (sscanf(line, "fork %ld", &n) == 1) {
			int status = 0;
			pid_t child = fork();
			if (!child) {
				run(n);
				_exit(0);
			}
			waitpid(child, &status, 0);
			printf("%d\n", status);
			continue;
		} else if (sscanf(line, "sleep %ld %ld", &k, &n) == 2) {
			while (n--) {
				long before = switches();
				sleeper(k);
				printf("%ld ", switches() - before);
			}
			printf("\n");
			continue;
		} else if (sscanf(line, "signals %ld", &n) == 1) {
			fork_in_handlers(n);
			continue;
		} else if (sscanf(line, "child %ld", &n) == 1) {
			child_in_two_parts(n);
		} else if (!strncmp(line, "reap", 4)) {
			printf("%d\n", reap());
			continue;
		} else if (sscanf(line, "apart %ld", &n) == 1) {
			fork_and_go_on(n);
			continue;
		} else if (sscanf(line, "spin %ld %ld", &k, &n) == 2) {
			while (n--)
				spinner(k);
		} else if (!strncmp(line, "drop", 4)) {
			if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
				abort();
		} else if (!strncmp(line, "exec", 4)) {
			execlp("cat", "cat", NULL);
		}
		printf("done\n");
	}
	return 0;
}
