#include "stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

int stop_open(struct stop *stop)
{
	atomic_init(&stop->requested, false);
	stop->fd = eventfd(0, EFD_CLOEXEC);
	if (stop->fd < 0)
		fprintf(stderr, "eventfd: %s\n", strerror(errno));
	return stop->fd < 0 ? -1 : 0;
}

void stop_request(struct stop *stop)
{
	const uint64_t one = 1;
	atomic_store(&stop->requested, true);
	/* Nobody reads it, so one write keeps it readable for everybody. */
	while (write(stop->fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

int stop_signals(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	int fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (fd < 0)
		fprintf(stderr, "signalfd: %s\n", strerror(errno));
	return fd;
}

static bool is_question(int signals)
{
	struct signalfd_siginfo signal;
	return read(signals, &signal, sizeof signal) == sizeof signal && signal.ssi_signo == SIGUSR1;
}

void stop_wait(struct stop *stop, int signals, unsigned long seconds, void (*tell)(void *), void *argument)
{
	struct itimerspec when = { .it_value.tv_sec = (time_t)seconds };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct pollfd fds[3] = {
		{ .fd = stop->fd, .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .fd = timer, .events = POLLIN },
	};
	if (timer >= 0)
		timerfd_settime(timer, 0, &when, NULL);
	for (;;) {
		if (poll(fds, 3, -1) < 0) {
			if (errno == EINTR)
				continue;
			break;
		}
		if (fds[0].revents || fds[2].revents || !is_question(signals))
			break;
		if (tell)
			tell(argument);
	}
	stop_request(stop);
	if (timer >= 0)
		close(timer);
}
