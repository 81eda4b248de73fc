/* Plug-in: modules 6 and 7, the learning bridge. */
#include <stdio.h>

#include "../src/module.h"
#include "mac_table.h"
#include "spin.h"

#define GROUP_BIT (1ull << 40) /* lowest bit of the first octet, in a MAC key */

static struct mac_table *table;
static uint64_t spin_every;
static uint64_t spin_us;

static MODULE void l2_learn(struct worker *worker, struct frame *frame)
{
	for (uint32_t i = 0; i < frame->count; i++) {
		const struct packet *packet = &frame->packets[frame->alive[i]];
		mac_table_learn(table, packet->source_key, packet->in_port, worker->now_s);
	}
}

static MODULE void l2_forward(struct worker *worker, struct frame *frame)
{
	static _Thread_local uint64_t since_spin;
	uint32_t all_ports = (1u << worker->ports) - 1;
	for (uint32_t i = 0; i < frame->count; i++) {
		struct packet *packet = &frame->packets[frame->alive[i]];
		int port = MAC_PORT_UNKNOWN;
		if (!(packet->destination_key & GROUP_BIT))
			port = mac_table_find(table, packet->destination_key, worker->now_s);
		if (port == MAC_PORT_UNKNOWN) {
			packet->out_ports = all_ports;
			worker->counters.flooded++;
		} else {
			packet->out_ports = 1u << port;
		}
		if (spin_every && ++since_spin == spin_every) {
			since_spin = 0;
			spin(spin_us);
		}
	}
}

static int l2_open(const struct settings *settings)
{
	spin_every = settings->spin_every;
	spin_us = settings->spin_us;
	table = mac_table_new(settings->mac_age_s);
	if (!table)
		fprintf(stderr, "hopscope-demo: no memory for the MAC table\n");
	return table ? 0 : -1;
}

static void l2_close(void)
{
	mac_table_free(table);
	table = NULL;
}

static const struct module modules[] = {
	{ "l2_learn", l2_learn },
	{ "l2_forward", l2_forward },
};

EXPORT const struct plugin demo_plugin = {
	.abi = PLUGIN_ABI,
	.module_count = 2,
	.modules = modules,
	.open = l2_open,
	.close = l2_close,
};
