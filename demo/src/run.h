/* The workers: each takes frames from its queue and runs them through the pipeline to the end. */
#ifndef DEMO_RUN_H
#define DEMO_RUN_H

#include <pthread.h>

#include "control.h"
#include "io.h"
#include "module.h"
#include "options.h"
#include "pipeline.h"
#include "stop.h"

struct run {
	struct control *control; /* NULL: no commands */
	const struct options *options;
	struct pipeline pipeline;
	struct budget budget;
	struct stop stop;
	struct io_queue *queues[WORKERS_MAX];
	double elapsed_s;
	uint32_t ports;
	_Atomic uint32_t active;
	atomic_bool failed;
};

struct worker_thread {
	/* Own cache lines: workers write their counters all the time. */
	struct worker worker __attribute__((aligned(128)));
	struct run *run;
	pthread_t thread;
};

/* Starts, waits for the end, joins. 0, or -1 after a line on stderr. */
int run_workers(struct run *run, struct worker_thread *threads, int signals);

#endif
