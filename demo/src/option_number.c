#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"

uint64_t option_number(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	/* strtoull takes "-1" for a huge number. */
	if (*text < '0' || *text > '9' || *end || errno || value < low || value > high) {
		fprintf(stderr, "--%s %s: needs a number from %" PRIu64 " to %" PRIu64 "\n", option, text, low, high);
		exit(EXIT_USAGE);
	}
	return value;
}
