/* Packets from memory: the packet's number decides all its bytes, so the sink can check each one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "packet_build.h"
#include "random.h"

#define TEMPLATES 1024
#define HOSTS 32
/* Room for the largest packet, and whole cache lines. */
#define STRIDE 1536

struct template {
	uint8_t data[STRIDE];
	bool permitted;
	uint8_t in_port;
};

struct memory_queue {
	struct io_queue base;
	struct budget *budget;
	uint32_t packet_bytes;
	uint32_t locality;      /* packets of a flow back to back: 1 ABCABC, 2 AABBCC */
	uint32_t expected;      /* permitted packets of the current frame that are still to come */
	uint64_t first;         /* number of the current frame's first packet */
	struct io_counts counts;
	bool sent[FRAME_PACKETS_MAX];
	uint8_t buffers[FRAME_PACKETS_MAX][STRIDE];
	struct template templates[TEMPLATES];
};

static uint32_t stamp_at(const struct memory_queue *queue)
{
	return queue->packet_bytes - 8;
}

static const struct template *template_of(const struct memory_queue *queue, uint64_t number)
{
	return &queue->templates[number / queue->locality % TEMPLATES];
}

static uint32_t memory_receive(struct io_queue *base, struct frame *frame, uint32_t burst)
{
	struct memory_queue *queue = (struct memory_queue *)base;
	uint32_t count = budget_claim(queue->budget, burst, &queue->first);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t number = queue->first + i;
		const struct template *template = template_of(queue, number);
		memcpy(queue->buffers[i], template->data, queue->packet_bytes);
		memcpy(queue->buffers[i] + stamp_at(queue), &number, sizeof number);
		frame->packets[i].data = queue->buffers[i];
		frame->packets[i].length = queue->packet_bytes;
		frame->packets[i].in_port = template->in_port;
		queue->expected += template->permitted;
		queue->sent[i] = false;
	}
	return count;
}

static bool is_right(struct memory_queue *queue, uint32_t port, uint32_t slot, const struct packet *packet)
{
	uint64_t number;
	const struct template *template = template_of(queue, queue->first + slot);

	if (packet->length != queue->packet_bytes || queue->sent[slot])
		return false;
	queue->sent[slot] = true;
	memcpy(&number, packet->data + stamp_at(queue), sizeof number);
	return number == queue->first + slot && template->permitted && port == (template->in_port ^ 1u) &&
	       memcmp(packet->data, template->data, stamp_at(queue)) == 0;
}

static uint32_t memory_send(struct io_queue *base, uint32_t port, const struct frame *frame, bool *taken)
{
	struct memory_queue *queue = (struct memory_queue *)base;
	for (uint32_t i = 0; i < frame->tx_count[port]; i++) {
		uint16_t slot = frame->tx[port][i];
		if (is_right(queue, port, slot, &frame->packets[slot]))
			queue->expected--;
		else
			queue->counts.wrong++;
		taken[slot] = true;
	}
	queue->counts.checked += frame->tx_count[port];
	return 0;
}

static void memory_release(struct io_queue *base, const struct frame *frame)
{
	struct memory_queue *queue = (struct memory_queue *)base;
	(void)frame;
	queue->counts.missing += queue->expected;
	queue->expected = 0;
}

static enum io_wait memory_wait(struct io_queue *base)
{
	(void)base;
	return IO_END;
}

static void memory_counts(struct io_queue *base, struct io_counts *counts)
{
	*counts = ((struct memory_queue *)base)->counts;
}

static void memory_close(struct io_queue *base)
{
	free(base);
}

static const struct io memory_io = {
	.name = "memory",
	.receive = memory_receive,
	.send = memory_send,
	.release = memory_release,
	.wait = memory_wait,
	.counts = memory_counts,
	.close = memory_close,
};

static void build_template(struct template *template, const struct flow_choice *flow, uint64_t *state, uint32_t bytes)
{
	uint32_t random = random_below(state, 2 * HOSTS * HOSTS);
	uint8_t in_port = (uint8_t)(random & 1);
	struct packet_plan plan = {
		.source = { 0x02, 0, 0, 0, in_port, (uint8_t)(random / 2 % HOSTS) },
		.destination = { 0x02, 0, 0, 0, in_port ^ 1, (uint8_t)(random / 2 / HOSTS) },
		.flow = flow->tuple,
		.length = bytes,
		.payload_seed = random_next(state),
	};
	template->permitted = flow->permitted;
	template->in_port = in_port;
	packet_build(template->data, &plan);
}

int io_memory_open(struct io_queue **out, const struct memory_options *options)
{
	struct flow_choice flows[TEMPLATES];
	uint64_t state = options->seed ^ 0x6d656d6f7279;
	struct memory_queue *queue = aligned_alloc(64, (sizeof *queue + 63) / 64 * 64);

	if (!queue) {
		fprintf(stderr, "hopscope-demo: no memory for a packet queue\n");
		return -1;
	}
	memset(queue, 0, sizeof *queue);
	if (flows_choose(flows, TEMPLATES, options->rules, options->seed, options->denied_percent) != 0) {
		free(queue);
		return -1;
	}
	queue->base.io = &memory_io;
	queue->budget = options->budget;
	queue->packet_bytes = options->packet_bytes;
	queue->locality = options->locality;
	for (uint32_t i = 0; i < TEMPLATES; i++)
		build_template(&queue->templates[i], &flows[i], &state, options->packet_bytes);
	*out = &queue->base;
	return 0;
}
