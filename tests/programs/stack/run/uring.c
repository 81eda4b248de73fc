/* uring: what liburing says when a program asks for a ring. */
#include <stdio.h>

int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
int io_uring_queue_init_params(unsigned entries, void *ring, void *parameters);

int main(void)
{
	static char ring[4096], parameters[4096];

	printf("%d\n", io_uring_queue_init(8, ring, 0));
	printf("%d\n", io_uring_queue_init_params(8, ring, parameters));
	return 0;
}
