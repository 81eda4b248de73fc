#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct session {
	uint64_t bytes;
	uint64_t next; /* in an order that the processor does not foresee */
};

struct control {
	int fd;
	uint64_t entries;
	volatile uint64_t shown; /* so that the walk is not left out */
	struct sockaddr_un address;
	struct session table[];
};

struct control *control_open(const char *path, uint64_t entries)
{
	struct control *control = calloc(1, sizeof *control + entries * sizeof(struct session));
	if (!control) {
		fprintf(stderr, "hopscope-demo: --control: no memory for %lu entries\n", (unsigned long)entries);
		return NULL;
	}
	*control = (struct control){ .entries = entries, .address = { .sun_family = AF_UNIX } };
	/* Entries is a power of two: every step of this odd multiple visits each once. */
	for (uint64_t i = 0; i < entries; i++)
		control->table[i] = (struct session){ .bytes = i, .next = (i * 5 + 12345) & (entries - 1) };
	snprintf(control->address.sun_path, sizeof control->address.sun_path, "%s", path);
	control->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->fd < 0 ||
	    bind(control->fd, (struct sockaddr *)&control->address, sizeof control->address) != 0) {
		fprintf(stderr, "hopscope-demo: --control %s: %s\n", path, strerror(errno));
		if (control->fd >= 0)
			close(control->fd);
		free(control);
		return NULL;
	}
	return control;
}

HELPER uint64_t control_show_sessions(const struct control *control)
{
	uint64_t bytes = 0;
	uint64_t at = 0;
	for (uint64_t i = 0; i < control->entries; i++) {
		bytes += control->table[at].bytes;
		at = control->table[at].next;
	}
	return bytes;
}

HELPER void control_serve(struct control *control)
{
	char command[64];
	if (recv(control->fd, command, sizeof command, 0) > 0)
		control->shown = control_show_sessions(control);
}

void control_close(struct control *control)
{
	if (!control)
		return;
	close(control->fd);
	unlink(control->address.sun_path);
	free(control);
}
