/* The contract between the executable and its plug-ins. */
#ifndef DEMO_MODULE_H
#define DEMO_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "frame.h"
#include "rules.h"

#define PLUGIN_ABI 3
#define PLUGIN_SYMBOL "demo_plugin"

/* A module must stay one function under one name, so that it can be measured as one. */
#define MODULE __attribute__((noinline, noclone))
/* Helpers called per packet: kept out of line for the same reason. */
#define HELPER __attribute__((noinline, noclone))
#define EXPORT __attribute__((visibility("default")))

struct io_queue;

struct worker {
	struct io_queue *queue;
	struct counters counters;
	uint64_t now_s;
	uint32_t id;
	uint32_t ports;
};

/* Runs once a frame, also when no packet of it is left: ten calls a frame, always. */
typedef void module_run(struct worker *worker, struct frame *frame);

struct module {
	const char *name;
	module_run *run;
};

struct settings {
	const struct rule_set *rules;
	uint64_t mac_age_s;
	uint64_t session_bytes; /* 0: none */
	uint64_t spin_us;
	uint64_t spin_every; /* 0: never */
	uint32_t spin_port;  /* 0: none */
};

struct plugin {
	uint32_t abi;
	uint32_t module_count;
	const struct module *modules;
	/* Returns 0, or -1 after a line on stderr. May be NULL, as may close. */
	int (*open)(const struct settings *settings);
	void (*close)(void);
};

/* In the executable, called from everywhere. */
EXPORT void packet_drop(struct worker *worker, enum drop_reason reason);

module_run ethernet_input, l2_input, l2_output, interface_output, device_output;

#endif
