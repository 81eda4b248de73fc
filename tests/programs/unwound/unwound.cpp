// Unwinds through measured C until SIGTERM, then says how often something went wrong.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

extern "C" int through_another(int);
extern "C" int through_libc(int *, int, int (*)(const void *, const void *));
extern "C" int waits(int);
extern "C" int leaves(int);
extern "C" int adds(int);

static volatile sig_atomic_t stop;
static int ends[2], cleaned;

struct Guard {
	~Guard() { __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED); }
};
static int throws(const void *, const void *) { throw 7; }
static void *waiting(void *ready)
{
	Guard guard;
	pthread_barrier_wait((pthread_barrier_t *)ready);
	for (;;)
		waits(ends[0]);
}
static void *leaving(void *)
{
	Guard guard;
	leaves(-1);
	return nullptr;
}

static unsigned long one_round(int n)
{
	unsigned long wrong = 0;
	int v[8] = {3, 1, 2, 5, 4, 7, 6, 0};
	try {
		wrong += through_another(n) != n + 2 || n % 3 == 0;
	} catch (int caught) {
		wrong += caught != n || n % 3 != 0;
	}
	try {
		through_libc(v, 8, throws);
		wrong++;
	} catch (int caught) {
		wrong += caught != 7;
	}
	pthread_barrier_t ready;
	pthread_barrier_init(&ready, nullptr, 2);
	cleaned = 0;
	pthread_t thread;
	pthread_create(&thread, nullptr, waiting, &ready);
	pthread_barrier_wait(&ready);
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
	pthread_create(&thread, nullptr, leaving, nullptr);
	pthread_join(thread, nullptr);
	return wrong + (cleaned != 2) + (adds(n) != n * 3 + 1);
}

int main()
{
	struct sigaction action = {};
	action.sa_handler = [](int) { stop = 1; };
	sigaction(SIGTERM, &action, nullptr);
	if (pipe(ends))
		return 2;
	unsigned long wrong = one_round(1), rounds = 0;
	if (const char *path = getenv("READY_FILE"))
		if (FILE *file = fopen(path, "w"))
			fclose(file);
	for (; !stop; rounds++)
		wrong += one_round((int)(rounds % 1000));
	printf("unwound: %lu rounds, %lu wrong\n", rounds, wrong);
	return wrong != 0 || rounds == 0;
}
