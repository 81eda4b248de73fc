/* Sends a command to a socket (argv[1], datagrams) every 50 to 150 ms, until it is killed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

int main(int argc, char **argv)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) * 2 + 1 : 1;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (argc < 2 || fd < 0 || strlen(argv[1]) >= sizeof to.sun_path)
		return 2;
	strcpy(to.sun_path, argv[1]);
	for (;;) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		struct timespec pause = { .tv_nsec = (long)(50000000 + state % 100000000) };
		nanosleep(&pause, NULL);
		if (sendto(fd, "sessions", 8, 0, (struct sockaddr *)&to, sizeof to) != 8)
			return 1;
	}
}
