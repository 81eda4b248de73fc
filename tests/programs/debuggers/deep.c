// A call chain that is always in its innermost function, or close to it.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static volatile unsigned long sum;

KEPT long innermost(long n)
{
	for (long i = 0; i < 20000; i++)
		sum += i ^ n;
	return (long)sum;
}
KEPT long inner(long n)
{
	return innermost(n + 1) + sum;
}
KEPT long outer(long n)
{
	return inner(n * 3) - sum;
}

int main(void)
{
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	for (long n = 0;; n++)
		outer(n);
}
