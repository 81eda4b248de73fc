// Threads that are cancelled asynchronously, wherever they are in functions that call each other without end. Every thread must
// end as cancelled, with all frames around cleaned up and the values that they kept in registers. Until SIGTERM.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static volatile sig_atomic_t stop;
static std::atomic<long> made, gone, caught, spinning, wrong;

KEPT long leaf(long n)
{
	volatile long below[8]; // in the red zone
	below[n & 7] = n;
	return below[n & 7] * 3;
}
KEPT long tail(long n) { return leaf(n + 1); }
static long (*volatile tails[2])(long) = {leaf, tail};
KEPT long chooses(long n)
{
	switch (n & 7) {
	case 0: return n * 5;
	case 1: return leaf(n + 4);
	case 2: return n / 3;
	case 3: return tails[n >> 3 & 1](n);
	case 4: return leaf(n) + 1;
	case 5: return n << 3;
	case 6: return tail(~n);
	default: return n - 9;
	}
}
KEPT long pushes(long n)
{
	long a = n * 3, b = n ^ 7, c = n + 5, d = n << 2, e = ~n;
	return chooses(a) + chooses(b) * c + (chooses(c) ^ d) + a + b + c + d + e;
}
KEPT void spins(long n)
{
	int before;
	volatile long sum = 0;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	spinning++;
	for (;;)
		sum = sum + pushes(n++);
}

struct Guard {
	Guard() { made++; }
	~Guard() { gone++; }
};
KEPT long surrounds(long depth, long n)
{
	long a = n * 3, b = n ^ 0x55, c = n + 11, d = depth * n;
	asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	Guard guard;
	try {
		if (!depth)
			spins(n);
		return surrounds(depth - 1, n + 1) + a + b + c + d;
	} catch (...) {
		wrong += a != n * 3 || b != (n ^ 0x55) || c != n + 11 || d != depth * n;
		caught++;
		throw;
	}
}
KEPT void *begins(void *n)
{
	surrounds(4, (long)n);
	return nullptr;
}

static const int THREADS = 6;

static void one_round(unsigned *seed)
{
	pthread_t threads[THREADS];
	spinning = 0;
	for (pthread_t &thread : threads)
		if (pthread_create(&thread, nullptr, begins, (void *)(long)rand_r(seed)))
			abort();
	while (spinning < THREADS)
		sched_yield();
	for (pthread_t thread : threads) {
		for (volatile int wait = rand_r(seed) % 2000; wait > 0; wait = wait - 1)
			;
		pthread_cancel(thread);
	}
	for (pthread_t thread : threads) {
		void *result = nullptr;
		wrong += pthread_join(thread, &result) || result != PTHREAD_CANCELED;
	}
	wrong += made != gone;
}

int main()
{
	long rounds = 0;
	unsigned seed = 1;

	signal(SIGTERM, [](int) { stop = 1; });
	one_round(&seed);
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	for (; !stop; rounds++)
		one_round(&seed);
	printf("%ld rounds, %ld caught, %ld wrong\n", rounds, caught.load(), wrong.load());
	return wrong != 0 || caught != made;
}
