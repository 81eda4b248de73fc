#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ready.h"

static uint64_t now_s(void)
{
	struct timespec now;
	/* The coarse clock: one read a frame, and ageing needs no more. */
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec;
}

static double now_precise_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void name_thread(pthread_t thread, uint32_t id)
{
	char name[16];
	snprintf(name, sizeof name, "worker-%hhu", (uint8_t)id);
	/* Only for who looks at us; a failure changes nothing else. */
	(void)pthread_setname_np(thread, name);
}

/* A planted fault: packets are there, and nobody takes them. Sleeping, as a thread does that is busy elsewhere. */
static void hold(uint64_t us)
{
	struct timespec left = { .tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000 };
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static void *work(void *argument)
{
	struct worker_thread *self = argument;
	struct run *run = self->run;
	struct worker *worker = &self->worker;
	struct io_queue *queue = worker->queue;
	struct frame *frame = calloc(1, sizeof *frame);
	uint64_t since_hold = 0;
	enum io_wait state = frame ? IO_AGAIN : IO_FAILED;

	struct control *control = worker->id == 0 ? run->control : NULL;
	while (state == IO_AGAIN && !atomic_load_explicit(&run->stop.requested, memory_order_relaxed)) {
		if (control)
			control_serve(control);
		frame->received = queue->io->receive(queue, frame, run->options->burst);
		if (frame->received == 0) {
			state = queue->io->wait(queue);
			if (run->options->hold_every && ++since_hold == run->options->hold_every) {
				since_hold = 0;
				hold(run->options->hold_us);
			}
			continue;
		}
		worker->now_s = now_s();
		pipeline_run(&run->pipeline, worker, frame);
		queue->io->release(queue, frame);
		if (budget_finish(&run->budget, frame->received))
			stop_request(&run->stop);
	}
	free(frame);
	if (state == IO_FAILED)
		atomic_store(&run->failed, true);
	if (atomic_fetch_sub(&run->active, 1) == 1 || state == IO_FAILED)
		stop_request(&run->stop);
	return NULL;
}

static void progress_print(void *argument)
{
	const struct run *run = argument;
	uint64_t finished = atomic_load_explicit(&run->budget.finished, memory_order_relaxed);
	printf("{\"type\":\"progress\",\"schema\":1,\"packets\":%" PRIu64 "}\n", finished);
	fflush(stdout);
}

int run_workers(struct run *run, struct worker_thread *threads, int signals)
{
	uint32_t started;
	int result = 0;

	atomic_store(&run->active, run->options->workers);
	double start_s = now_precise_s();
	for (started = 0; started < run->options->workers; started++) {
		struct worker_thread *thread = &threads[started];
		thread->run = run;
		thread->worker = (struct worker){ .queue = run->queues[started], .id = started, .ports = run->ports };
		int error = pthread_create(&thread->thread, NULL, work, thread);
		if (error) {
			fprintf(stderr, "hopscope-demo: worker thread: %s\n", strerror(error));
			result = -1;
			break;
		}
		name_thread(thread->thread, started);
	}
	if (result == 0)
		result = ready_write(run->options->ready_file);
	if (result == 0)
		stop_wait(&run->stop, signals, run->options->seconds, progress_print, run);
	else
		stop_request(&run->stop);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i].thread, NULL);
	run->elapsed_s = now_precise_s() - start_s;
	return result == 0 && !atomic_load(&run->failed) ? 0 : -1;
}
