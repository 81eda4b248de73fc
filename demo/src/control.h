/* Management commands, served by the first worker between two frames, as a router's command line is. */
#ifndef DEMO_CONTROL_H
#define DEMO_CONTROL_H

#include <stdint.h>

#include "module.h"

struct control;

/* Listens for datagrams at `path`; NULL after a line on stderr. Each datagram is a command. */
struct control *control_open(const char *path, uint64_t entries);
/* Serves a command, if there is one. */
void control_serve(struct control *control);
/* What "show sessions" does: walks the whole table, and gives the bytes in it. */
HELPER uint64_t control_show_sessions(const struct control *control);
void control_close(struct control *control);

#endif
