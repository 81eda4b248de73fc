/* One descriptor that becomes readable, for good, when the run shall end. */
#ifndef DEMO_STOP_H
#define DEMO_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

struct stop {
	atomic_bool requested; /* for workers that never sleep */
	int fd;                /* for those that do */
};

int stop_open(struct stop *stop);
void stop_request(struct stop *stop);
/* Blocks SIGINT, SIGTERM and SIGUSR1 in this thread and all it starts later; returns their descriptor. */
int stop_signals(void);
/* Until stop is requested, SIGINT or SIGTERM comes, or the seconds (0: no limit) are over. Requests stop.
 * Each SIGUSR1 before that calls `tell`. */
void stop_wait(struct stop *stop, int signals, unsigned long seconds, void (*tell)(void *), void *argument);

#endif
