/* interrupted ADDRESS PORT TIMES: waits with epoll_wait, and with poll, for a listener to which nobody comes, by so many descriptors that a look at
 * all of them takes a while, and is interrupted by a timer in that time, so many times each. Says how many of the waits went on to their
 * time-out although the handler had run. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { MANY = 2000, TIMEOUT_MS = 50, FIRST_US = 100, STEP_US = 2, SPAN_US = 100 };

static volatile sig_atomic_t ran;

static void handler(int signal)
{
	(void)signal;
	ran = 1;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	struct sockaddr_in own = {.sin_family = AF_INET};
	struct epoll_event event = {.events = EPOLLIN};
	static struct pollfd polled[MANY];
	int times, missed[2] = {0, 0}, listener, set;

	must(argc == 4, "interrupted ADDRESS PORT TIMES");
	inet_pton(AF_INET, argv[1], &own.sin_addr);
	own.sin_port = htons(atoi(argv[2]));
	times = atoi(argv[3]);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(listener, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(listener, 9) == 0, "listen");
	must((set = epoll_create1(0)) >= 0, "epoll_create1");
	for (int n = 0; n < MANY; n++) {
		polled[n] = (struct pollfd){.fd = dup(listener), .events = POLLIN};
		must(polled[n].fd >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, polled[n].fd, &event) == 0, "dup");
	}
	must(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
	for (int n = 0; n < 2 * times; n++) {
		struct itimerval at = {.it_value.tv_usec = FIRST_US + n * STEP_US % SPAN_US};
		int ready;

		/* Each is looked at again. */
		for (int k = 0; k < MANY; k++)
			must(epoll_ctl(set, EPOLL_CTL_MOD, polled[k].fd, &event) == 0, "epoll_ctl");
		ran = 0;
		must(setitimer(ITIMER_REAL, &at, NULL) == 0, "setitimer");
		ready = n % 2 ? poll(polled, MANY, TIMEOUT_MS) : epoll_wait(set, &event, 1, TIMEOUT_MS);
		must(ready == 0 || errno == EINTR, "a wait");
		missed[n % 2] += ready == 0 && ran;
	}
	printf("%d %d\n", missed[0], missed[1]);
	return 0;
}
