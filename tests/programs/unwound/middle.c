/* Plain C, between who throws or ends a thread and who has clean-ups. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

int may_throw(int n);

int through_the_table(int n) { return may_throw(n) + 1; }
int through_another(int n) { return through_the_table(n) + 1; }
int through_libc(int *v, int n, int (*compare)(const void *, const void *))
{
	qsort(v, n, sizeof *v, compare);
	return v[0] + 1;
}
int waits(int fd)
{
	char byte;
	return read(fd, &byte, 1) + 1;
}
int leaves(int fd)
{
	if (fd < 0)
		pthread_exit(0);
	return fd + 1;
}
int adds(int n) { return n * 3 + 1; }
