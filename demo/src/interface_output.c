/* Module 9: one list of packets for each output port. */
#include "module.h"

MODULE void interface_output(struct worker *worker, struct frame *frame)
{
	for (uint32_t port = 0; port < worker->ports; port++)
		frame->tx_count[port] = 0;
	for (uint32_t i = 0; i < frame->count; i++) {
		uint16_t index = frame->alive[i];
		for (uint32_t left = frame->packets[index].out_ports; left; left &= left - 1) {
			uint32_t port = (uint32_t)__builtin_ctz(left);
			frame->tx[port][frame->tx_count[port]++] = index;
		}
	}
}
