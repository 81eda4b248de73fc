/* Damaged packets of any length, each in memory of exactly its size: a module that reads past
 * an end or writes to a packet is caught, by AddressSanitizer or by the comparison here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "packet_build.h"
#include "random.h"

#define FLOWS 256
#define LONGEST 1600

struct fuzz_queue {
	struct io_queue base;
	struct budget *budget;
	uint64_t seed;
	struct io_counts counts;
	uint8_t *packets[FRAME_PACKETS_MAX];
	uint8_t copies[FRAME_PACKETS_MAX][LONGEST];
	struct flow_choice flows[FLOWS];
};

static uint32_t random_length(uint64_t *state)
{
	/* Most around the ends of headers, where the checks are. */
	return random_below(state, 4) ? random_below(state, 80) : random_below(state, LONGEST + 1);
}

static void damage(uint8_t *bytes, uint32_t length, uint64_t *state)
{
	static const uint8_t telling[] = { 0x00, 0x01, 0x06, 0x08, 0x11, 0x40, 0x41, 0x45, 0x4f, 0x60, 0x81, 0xa8, 0xff };
	uint32_t within = length < 64 ? length : 64;
	for (uint32_t left = within ? random_below(state, 6) : 0; left; left--)
		bytes[random_below(state, within)] = random_below(state, 2) ? telling[random_below(state, sizeof telling)]
									    : (uint8_t)random_next(state);
}

static uint32_t build(const struct fuzz_queue *queue, uint8_t out[LONGEST], uint64_t number)
{
	uint64_t state = queue->seed ^ number * 0xd1342543de82ef95u;
	struct packet_plan plan = {
		.source = { 0x02, 0, 0, 0, 0, (uint8_t)random_below(&state, 256) },
		.destination = { 0x02, 0, 0, 0, 0, (uint8_t)random_below(&state, 256) },
		.vlan = random_below(&state, 2) ? 7 : 0,
		.flow = queue->flows[random_below(&state, FLOWS)].tuple,
		.length = PACKET_BYTES_MAX,
		.payload_seed = number,
	};
	uint32_t length = random_length(&state);
	uint32_t l3 = packet_plan_l3(&plan);

	memset(out, 0, LONGEST);
	packet_build(out, &plan);
	/* Half of them say their true length, so that they get past that check. */
	if (random_below(&state, 2) && length > l3)
		store_be16(out + l3 + 2, (uint16_t)(length - l3));
	damage(out, length, &state);
	return length;
}

static uint32_t fuzz_receive(struct io_queue *base, struct frame *frame, uint32_t burst)
{
	struct fuzz_queue *queue = (struct fuzz_queue *)base;
	uint64_t first;
	uint32_t count = budget_claim(queue->budget, burst, &first);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t length = build(queue, queue->copies[i], first + i);
		/* Length 0 still needs an address; the sanitizer lets nobody read it. */
		queue->packets[i] = malloc(length ? length : 1);
		if (!queue->packets[i])
			abort();
		memcpy(queue->packets[i], queue->copies[i], length);
		frame->packets[i].data = queue->packets[i];
		frame->packets[i].length = length;
		frame->packets[i].in_port = (uint8_t)((first + i) & 1);
	}
	return count;
}

static uint32_t fuzz_send(struct io_queue *base, uint32_t port, const struct frame *frame, bool *taken)
{
	struct fuzz_queue *queue = (struct fuzz_queue *)base;
	for (uint32_t i = 0; i < frame->tx_count[port]; i++) {
		uint16_t slot = frame->tx[port][i];
		const struct packet *packet = &frame->packets[slot];
		if (packet->data != queue->packets[slot] || packet->in_port == port ||
		    memcmp(packet->data, queue->copies[slot], packet->length) != 0)
			queue->counts.wrong++;
		taken[slot] = true;
	}
	queue->counts.checked += frame->tx_count[port];
	return 0;
}

static void fuzz_release(struct io_queue *base, const struct frame *frame)
{
	struct fuzz_queue *queue = (struct fuzz_queue *)base;
	for (uint32_t i = 0; i < frame->received; i++)
		free(queue->packets[i]);
}

static enum io_wait fuzz_wait(struct io_queue *base)
{
	(void)base;
	return IO_END;
}

static void fuzz_counts(struct io_queue *base, struct io_counts *counts)
{
	*counts = ((struct fuzz_queue *)base)->counts;
}

static void fuzz_close(struct io_queue *base)
{
	free(base);
}

static const struct io fuzz_io = {
	.name = "fuzz",
	.receive = fuzz_receive,
	.send = fuzz_send,
	.release = fuzz_release,
	.wait = fuzz_wait,
	.counts = fuzz_counts,
	.close = fuzz_close,
};

int io_fuzz_open(struct io_queue **out, const struct memory_options *options)
{
	struct fuzz_queue *queue = calloc(1, sizeof *queue);
	if (!queue) {
		fprintf(stderr, "hopscope-demo: no memory for a packet queue\n");
		return -1;
	}
	if (flows_choose(queue->flows, FLOWS, options->rules, options->seed, options->denied_percent) != 0) {
		free(queue);
		return -1;
	}
	queue->base.io = &fuzz_io;
	queue->budget = options->budget;
	queue->seed = options->seed;
	*out = &queue->base;
	return 0;
}
