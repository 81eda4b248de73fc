#include "traffic.h"

#include <time.h>

#include "ready.h"

#define BATCH 64
#define TICK_NS 1000000
#define LEARN_TICKS 3000
#define STUCK_TICKS 3000

struct batch {
	struct traffic_packet packets[BATCH];
	struct packet_view views[BATCH];
	uint64_t numbers[BATCH];
	uint32_t expected[BATCH];
	uint32_t count;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_until(uint64_t when_ns)
{
	struct timespec when = { .tv_sec = (time_t)(when_ns / 1000000000u), .tv_nsec = (long)(when_ns % 1000000000u) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static void flush(struct traffic_run *run, enum traffic_port port, struct batch *batch)
{
	bool taken[BATCH];
	if (batch->count == 0)
		return;
	run->refused += packet_socket_send(&run->sockets[port], batch->views, batch->count, taken);
	for (uint32_t i = 0; i < batch->count; i++) {
		run->sent[batch->numbers[i]] = taken[i];
		run->sent_count += taken[i];
		run->expected_count += taken[i] ? batch->expected[i] : 0;
	}
	batch->count = 0;
}

static void send_numbers(struct traffic_run *run, struct batch batches[2], uint64_t from, uint64_t to)
{
	for (uint64_t number = from; number < to; number++) {
		struct traffic_packet built;
		traffic_packet_build(&run->traffic, number, &built);
		struct batch *batch = &batches[built.from];
		uint32_t slot = batch->count++;
		batch->packets[slot] = built;
		batch->numbers[slot] = number;
		batch->expected[slot] = (uint32_t)__builtin_popcount(built.expected_ports);
		batch->views[slot] = (struct packet_view){ .data = batch->packets[slot].data, .length = built.length };
		if (batch->count == BATCH)
			flush(run, built.from, batch);
	}
	flush(run, PORT_LEFT, &batches[PORT_LEFT]);
	flush(run, PORT_RIGHT, &batches[PORT_RIGHT]);
}

/* The announcements, one at a time so that none is lost, until all came out at every other port. */
static bool announce(struct traffic_run *run, struct batch batches[2])
{
	uint64_t expected = (uint64_t)TRAFFIC_ANNOUNCEMENTS * (run->port_count - 1);
	send_numbers(run, batches, 0, TRAFFIC_ANNOUNCEMENTS);
	for (int tick = 0; tick < LEARN_TICKS && !atomic_load(&run->stop.requested); tick++) {
		if (atomic_load(&run->check.announced) == expected)
			return true;
		wait_until(now_ns() + TICK_NS);
	}
	return false;
}

/* Until few enough are on their way. False when nothing moves: then packets are lost, and
 * waiting for them won't help. */
static bool wait_for_room(struct traffic_run *run)
{
	uint64_t before = atomic_load(&run->check.received);
	for (int ticks = 0; run->window && ticks < STUCK_TICKS && !atomic_load(&run->stop.requested); ticks++) {
		uint64_t received = atomic_load(&run->check.received);
		if (run->expected_count < received + run->window)
			return true;
		if (received != before)
			ticks = 0;
		before = received;
		wait_until(now_ns() + TICK_NS / 10);
	}
	return run->window == 0;
}

/* Open loop without a window: the time decides how many packets are due, never what came back. */
static void send_on_time(struct traffic_run *run, struct batch batches[2])
{
	uint64_t start = now_ns(), number = TRAFFIC_ANNOUNCEMENTS;
	while (number < run->packets && !atomic_load(&run->stop.requested)) {
		uint64_t elapsed = now_ns() - start;
		uint64_t due = TRAFFIC_ANNOUNCEMENTS + (uint64_t)((__uint128_t)elapsed * run->rate_per_s / 1000000000u);
		if (due > run->packets)
			due = run->packets;
		while (number < due) {
			uint64_t step = run->window && due - number > BATCH ? number + BATCH : due;
			if (!wait_for_room(run))
				goto done;
			send_numbers(run, batches, number, step);
			number = step;
		}
		wait_until(start + elapsed + TICK_NS);
	}
done:
	run->sending_s = (double)(now_ns() - start) * 1e-9;
}

void *traffic_send(void *argument)
{
	static struct batch batches[2];
	struct traffic_run *run = argument;

	if (announce(run, batches)) {
		atomic_store(&run->learned, true);
		if (ready_write(run->ready_file) == 0)
			send_on_time(run, batches);
	}
	atomic_store(&run->sender_done, true);
	return NULL;
}
