#include "pipeline.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const order[MODULE_COUNT] = {
	"ethernet_input", "l2_input", "feature_arc_in", "acl_match", "feature_arc_out",
	"l2_learn", "l2_forward", "l2_output", "interface_output", "device_output",
};

static const char *const plugin_files[PLUGIN_COUNT] = { "feature.so", "acl.so", "l2.so" };

static const struct module built_in[] = {
	{ "ethernet_input", ethernet_input },
	{ "l2_input", l2_input },
	{ "l2_output", l2_output },
	{ "interface_output", interface_output },
	{ "device_output", device_output },
};

static int place(struct pipeline *pipeline, const struct module *module, const char *object)
{
	for (int i = 0; i < MODULE_COUNT; i++) {
		if (strcmp(order[i], module->name) != 0)
			continue;
		if (pipeline->modules[i].run)
			break;
		pipeline->modules[i] = *module;
		pipeline->objects[i] = object;
		return 0;
	}
	fprintf(stderr, "hopscope-demo: %s: module %s has no place in the pipeline\n", object, module->name);
	return -1;
}

static int own_directory(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);
	if (length <= 0) {
		perror("hopscope-demo: /proc/self/exe");
		return -1;
	}
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	return 0;
}

static int load(struct pipeline *pipeline, int index, const char *directory, const struct settings *settings)
{
	char path[2 * PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", directory, plugin_files[index]);
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "hopscope-demo: plug-in: %s\n", dlerror());
		return -1;
	}
	pipeline->handles[index] = handle;
	const struct plugin *plugin = dlsym(handle, PLUGIN_SYMBOL);
	if (!plugin || plugin->abi != PLUGIN_ABI) {
		fprintf(stderr, "hopscope-demo: %s: not a plug-in of this version: build again\n", path);
		return -1;
	}
	if (plugin->open && plugin->open(settings) != 0)
		return -1;
	pipeline->plugins[index] = plugin;
	for (uint32_t i = 0; i < plugin->module_count; i++)
		if (place(pipeline, &plugin->modules[i], plugin_files[index]) != 0)
			return -1;
	return 0;
}

int pipeline_open(struct pipeline *pipeline, const char *plugin_directory, const struct settings *settings)
{
	char beside[PATH_MAX + 16];

	*pipeline = (struct pipeline){ 0 };
	if (!plugin_directory) {
		if (own_directory(beside, PATH_MAX) != 0)
			return -1;
		strcat(beside, "/plugins");
		plugin_directory = beside;
	}
	for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
		if (place(pipeline, &built_in[i], "hopscope-demo") != 0)
			return -1;
	for (int i = 0; i < PLUGIN_COUNT; i++)
		if (load(pipeline, i, plugin_directory, settings) != 0)
			return -1;
	for (int i = 0; i < MODULE_COUNT; i++) {
		if (!pipeline->modules[i].run) {
			fprintf(stderr, "hopscope-demo: module %s is in no plug-in of %s\n", order[i], plugin_directory);
			return -1;
		}
	}
	return 0;
}

MODULE void pipeline_run(const struct pipeline *pipeline, struct worker *worker, struct frame *frame)
{
	worker->counters.frames++;
	worker->counters.packets += frame->received;
	frame->count = frame->received;
	for (uint32_t i = 0; i < frame->received; i++)
		frame->alive[i] = (uint16_t)i;
	for (int i = 0; i < MODULE_COUNT; i++)
		pipeline->modules[i].run(worker, frame);
}

void pipeline_close(struct pipeline *pipeline)
{
	for (int i = 0; i < PLUGIN_COUNT; i++) {
		if (pipeline->plugins[i] && pipeline->plugins[i]->close)
			pipeline->plugins[i]->close();
		if (pipeline->handles[i])
			dlclose(pipeline->handles[i]);
	}
}
