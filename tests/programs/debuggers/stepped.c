// Threads that make one call each, in turn: what a debugger steps through.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static volatile long sum;

KEPT long innermost(long n)
{
	switch (n & 7) {
	case 0: sum += n; break;
	case 1: sum ^= n; break;
	case 2: sum -= n; break;
	case 3: sum *= n; break;
	case 4: sum |= n; break;
	case 5: sum &= n; break;
	case 6: sum <<= n & 3; break;
	default: sum = n;
	}
	return sum;
}
KEPT long inner(long n)
{
	long a = innermost(n), b = innermost(n + 5);
	return a ^ b;
}
KEPT long outer(long n)
{
	return inner(n * 3) - sum;
}
KEPT void *begins(void *n)
{
	long *result = n;
	*result = outer(*result);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	long n = 0, result;
	int ready = 0;

	for (;; n++) {
		result = n;
		if (pthread_create(&thread, NULL, begins, &result) || pthread_join(thread, NULL))
			return 1;
		if (!ready++)
			close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	}
}
