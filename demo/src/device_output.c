/* Module 10: hand each port its list. */
#include "io.h"
#include "module.h"

MODULE void device_output(struct worker *worker, struct frame *frame)
{
	struct counters *counters = &worker->counters;
	bool taken[FRAME_PACKETS_MAX] = { false };

	for (uint32_t port = 0; port < worker->ports; port++) {
		if (frame->tx_count[port] == 0)
			continue;
		uint32_t refused = worker->queue->io->send(worker->queue, port, frame, taken);
		counters->out_packets[port] += frame->tx_count[port] - refused;
		counters->out_refused[port] += refused;
	}
	for (uint32_t i = 0; i < frame->count; i++) {
		if (taken[frame->alive[i]])
			counters->forwarded++;
		else
			packet_drop(worker, DROP_DEVICE_REFUSED);
	}
	frame->count = 0;
}
