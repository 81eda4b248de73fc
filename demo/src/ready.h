#ifndef DEMO_READY_H
#define DEMO_READY_H

/* Writes our pid into `path` in one step, so that who waits for the file never reads half of it.
 * NULL does nothing. Returns 0, or -1 after a line on stderr. */
int ready_write(const char *path);

#endif
