/* Where packets come from and go to. A queue belongs to one worker. */
#ifndef DEMO_IO_H
#define DEMO_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "budget.h"
#include "frame.h"
#include "rules.h"

struct io_queue;

enum io_wait { IO_AGAIN, IO_END, IO_FAILED };

/* Counts of a queue that no module sees. */
struct io_counts {
	uint64_t kernel_dropped;   /* ring was full */
	uint64_t oversized;        /* did not fit a ring slot, so not forwarded */
	uint64_t own_outgoing;     /* copies of what we sent ourselves; the kernel filters them, expect 0 */
	uint64_t checksum_unknown; /* checksum left to the device, of a protocol that we can't finish */
	uint64_t checked;          /* packets the memory sink compared */
	uint64_t wrong;            /* … that differ, were denied, came twice or at the wrong port */
	uint64_t missing;          /* permitted packets that never came */
};

struct io {
	const char *name;
	/* Fills frame->packets from 0, returns how many; 0: call wait. */
	uint32_t (*receive)(struct io_queue *queue, struct frame *frame, uint32_t burst);
	/* Sends frame->tx[port], marks by packet index what was taken, returns how many were refused. */
	uint32_t (*send)(struct io_queue *queue, uint32_t port, const struct frame *frame, bool *taken);
	/* The frame's packets are done with; their memory may be reused. */
	void (*release)(struct io_queue *queue, const struct frame *frame);
	enum io_wait (*wait)(struct io_queue *queue);
	void (*counts)(struct io_queue *queue, struct io_counts *counts);
	void (*close)(struct io_queue *queue);
};

/* First member of every kind of queue. */
struct io_queue {
	const struct io *io;
};

struct memory_options {
	const struct rule_set *rules;
	struct budget *budget;
	uint64_t seed;
	uint32_t packet_bytes;
	uint32_t denied_percent;
	uint32_t locality;
};

/* These return 0, or -1 after a line on stderr. */
int io_memory_open(struct io_queue **queue, const struct memory_options *options);
int io_fuzz_open(struct io_queue **queue, const struct memory_options *options);
int io_packet_open(struct io_queue **queues, uint32_t workers, const char *const *ports, uint32_t port_count,
		   bool poll, uint32_t ring_slots, struct budget *budget, int stop_fd);

#endif
