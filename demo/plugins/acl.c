/* Plug-in: module 4, the access list. */
#include <stdio.h>

#include "../src/module.h"
#include "spin.h"
#include "tuple_space.h"

static struct tuple_space *space;
static uint32_t spin_port;
static uint64_t spin_us;

static HELPER bool acl_lookup(const struct five_tuple *flow)
{
	if (spin_port && flow->destination_port == spin_port)
		spin(spin_us);
	return tuple_space_permit(space, flow);
}

static MODULE void acl_match(struct worker *worker, struct frame *frame)
{
	(void)worker;
	for (uint32_t i = 0; i < frame->count; i++) {
		struct packet *packet = &frame->packets[frame->alive[i]];
		if (packet->has_flow)
			packet->permitted = acl_lookup(&packet->flow);
	}
}

static int acl_open(const struct settings *settings)
{
	spin_port = settings->spin_port;
	spin_us = settings->spin_us;
	space = tuple_space_build(settings->rules);
	if (!space)
		fprintf(stderr, "hopscope-demo: no memory for the access list\n");
	return space ? 0 : -1;
}

static void acl_close(void)
{
	tuple_space_free(space);
	space = NULL;
}

static const struct module modules[] = { { "acl_match", acl_match } };

EXPORT const struct plugin demo_plugin = {
	.abi = PLUGIN_ABI,
	.module_count = 1,
	.modules = modules,
	.open = acl_open,
	.close = acl_close,
};
