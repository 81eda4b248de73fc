/* The ten modules in the order a frame takes them, found in the executable and in plug-ins. */
#ifndef DEMO_PIPELINE_H
#define DEMO_PIPELINE_H

#include "module.h"

#define MODULE_COUNT 10
#define PLUGIN_COUNT 3

struct pipeline {
	struct module modules[MODULE_COUNT];
	const char *objects[MODULE_COUNT]; /* "hopscope-demo", or the plug-in's file name */
	void *handles[PLUGIN_COUNT];
	const struct plugin *plugins[PLUGIN_COUNT];
};

/* 0, or -1 after a line on stderr. plugin_directory NULL: `plugins` beside the executable. */
int pipeline_open(struct pipeline *pipeline, const char *plugin_directory, const struct settings *settings);
void pipeline_run(const struct pipeline *pipeline, struct worker *worker, struct frame *frame);
void pipeline_close(struct pipeline *pipeline);

#endif
