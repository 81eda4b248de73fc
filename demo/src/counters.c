#include "counters.h"

const char *drop_reason_name(enum drop_reason reason)
{
	static const char *const names[DROP_REASON_COUNT] = {
#define X(name, text) #text,
		DROP_REASONS(X)
#undef X
	};
	return names[reason];
}

void counters_add(struct counters *total, const struct counters *part)
{
	total->frames += part->frames;
	total->packets += part->packets;
	total->bytes += part->bytes;
	total->forwarded += part->forwarded;
	total->flooded += part->flooded;
	for (int reason = 0; reason < DROP_REASON_COUNT; reason++)
		total->drops[reason] += part->drops[reason];
	for (int port = 0; port < PORTS_MAX; port++) {
		total->out_packets[port] += part->out_packets[port];
		total->out_refused[port] += part->out_refused[port];
	}
}

uint64_t counters_dropped(const struct counters *counters)
{
	uint64_t sum = 0;
	for (int reason = 0; reason < DROP_REASON_COUNT; reason++)
		sum += counters->drops[reason];
	return sum;
}
