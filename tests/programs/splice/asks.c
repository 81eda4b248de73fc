/* A library that asks how much can be read. */
#include <sys/ioctl.h>

int available(int fd)
{
	int bytes = -1;

	ioctl(fd, FIONREAD, &bytes);
	return bytes;
}
