/* A planted fault: time spent for nothing. */
#ifndef DEMO_SPIN_H
#define DEMO_SPIN_H

#include <stdint.h>
#include <time.h>

static inline uint64_t spin_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline void spin(uint64_t us)
{
	for (uint64_t end = spin_now_us() + us; spin_now_us() < end;)
		;
}

#endif
