/* Module 8: split horizon. Nothing goes back where it came from. */
#include "module.h"

MODULE void l2_output(struct worker *worker, struct frame *frame)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < frame->count; i++) {
		struct packet *packet = &frame->packets[frame->alive[i]];
		packet->out_ports &= ~(1u << packet->in_port);
		if (packet->out_ports == 0) {
			packet_drop(worker, DROP_SAME_PORT);
			continue;
		}
		frame->alive[kept++] = frame->alive[i];
	}
	frame->count = kept;
}
