#include "ready.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int ready_write(const char *path)
{
	char partial[PATH_MAX];
	if (!path)
		return 0;
	snprintf(partial, sizeof partial, "%s.%d", path, (int)getpid());
	FILE *file = fopen(partial, "we");
	if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0 || rename(partial, path) != 0) {
		fprintf(stderr, "ready file %s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}
