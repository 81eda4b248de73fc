/* Takes a processor now and then: spins for 3 to 10 ms after 40 to 160 ms of sleep, until it is killed. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state;

static uint64_t below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) * 2 + 1 : 1;
	for (;;) {
		struct timespec pause = { .tv_nsec = (long)(40000000 + below(120000000)) };
		nanosleep(&pause, NULL);
		for (uint64_t end = now_ns() + 3000000 + below(7000000); now_ns() < end;)
			;
	}
}
