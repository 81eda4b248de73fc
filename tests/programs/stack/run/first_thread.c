/* first_thread ADDRESS PORT: what a connection sends goes back to it, by a thread that the first one, which has ended, does not wait for. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener;

static void *serves(void *unused)
{
	static char bytes[65536];
	int fd = accept(listener, NULL, NULL);
	ssize_t got;

	(void)unused;
	while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		for (ssize_t done = 0, put; done < got; done += put)
			if ((put = send(fd, bytes + done, got - done, 0)) < 0)
				exit(1);
	close(fd);
	close(listener);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = {.sin_family = AF_INET};
	pthread_t thread;

	if (argc != 3)
		return 2;
	inet_pton(AF_INET, argv[1], &own.sin_addr);
	own.sin_port = htons(atoi(argv[2]));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 1))
		return 3;
	if (pthread_create(&thread, NULL, serves, NULL))
		return 4;
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0644));
	pthread_exit(NULL);
}
