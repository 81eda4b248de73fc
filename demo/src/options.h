#ifndef DEMO_OPTIONS_H
#define DEMO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

#define WORKERS_MAX 2
#define EXIT_USAGE 2
#define LOCALITY_MAX 1024
#define RING_SLOTS_MIN 32
#define RING_SLOTS_MAX 65536
#define SESSION_BYTES_MAX (1 << 20)

enum source { SOURCE_PACKET, SOURCE_MEMORY, SOURCE_FUZZ };

struct options {
	const char *ports[PORTS_MAX];
	uint32_t port_count;
	enum source source;
	uint32_t workers;
	uint32_t burst;
	bool poll;
	uint32_t ring_slots;
	uint64_t packets;       /* 0: no limit */
	uint64_t seconds;       /* 0: no limit */
	const char *rules_file; /* NULL: generate */
	uint64_t rules_seed;
	uint32_t rules_count;
	bool print_rules;
	uint64_t seed;
	uint32_t packet_bytes;
	uint32_t denied_percent;
	uint32_t locality;
	uint64_t mac_age_s;
	uint64_t session_bytes; /* 0: no state of flows */
	uint64_t spin_us;       /* planted faults: how long */
	uint64_t spin_every;    /* 0: no packet makes l2_forward spin */
	uint32_t spin_port;     /* 0: no destination port makes acl_lookup spin */
	uint64_t hold_us;       /* planted: packets are let gather for so long */
	uint64_t hold_every;    /* 0: never */
	const char *control;    /* NULL: no commands */
	uint64_t control_entries;
	const char *plugins;    /* NULL: beside the executable */
	const char *ready_file; /* NULL: none */
};

/* Ends the process, with EXIT_USAGE, on anything it doesn't understand. */
void options_parse(struct options *options, int argc, char **argv);

/* Shared with the traffic tool: a decimal number in [low, high], or exit. */
uint64_t option_number(const char *option, const char *text, uint64_t low, uint64_t high);

#endif
