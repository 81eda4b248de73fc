#include <inttypes.h>
#include <stdio.h>

#include "traffic.h"

struct tally {
	uint64_t fates[DROP_REASON_COUNT + 1]; /* the last: FORWARDED */
	uint64_t expected, missing;
};

static struct tally count(const struct traffic_run *run)
{
	struct tally tally = { 0 };
	for (uint64_t number = 0; number < run->packets; number++) {
		struct traffic_packet packet;
		if (!run->sent[number])
			continue;
		traffic_packet_build(&run->traffic, number, &packet);
		tally.fates[packet.fate]++;
		tally.expected += (uint64_t)__builtin_popcount(packet.expected_ports);
		tally.missing += (uint64_t)__builtin_popcount(packet.expected_ports & ~run->check.seen[number]);
	}
	return tally;
}

bool traffic_report(struct traffic_run *run)
{
	const struct traffic_check *check = &run->check;
	struct tally tally = count(run);
	uint64_t kernel_dropped = 0;

	for (uint32_t port = 0; port < run->port_count; port++) {
		packet_socket_statistics(&run->sockets[port]);
		kernel_dropped += run->sockets[port].kernel_dropped;
	}
	bool right = atomic_load(&run->learned) && tally.missing == 0 && check->changed == 0 && check->duplicated == 0 &&
		     check->denied_passed == 0 && check->misdirected == 0;
	printf("{\"type\":\"summary\",\"schema\":1,\"name\":\"hopscope-demo-traffic\",\"right\":%s,\"learned\":%s,"
	       "\"sent\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"asked_per_s\":%" PRIu64 ",\"sent_per_s\":%.0f,"
	       "\"expected\":%" PRIu64 ",\"received\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"changed\":%" PRIu64
	       ",\"duplicated\":%" PRIu64 ",\"denied_passed\":%" PRIu64 ",\"misdirected\":%" PRIu64
	       ",\"reordered\":%" PRIu64 ",\"foreign\":%" PRIu64 ",\"kernel_dropped\":%" PRIu64 ",\"permitted\":%" PRIu64
	       ",\"expected_drops\":{",
	       right ? "true" : "false", atomic_load(&run->learned) ? "true" : "false", run->sent_count, run->refused,
	       run->rate_per_s, run->sending_s > 0 ? (double)run->sent_count / run->sending_s : 0, tally.expected,
	       check->received, tally.missing, check->changed, check->duplicated, check->denied_passed,
	       check->misdirected, check->reordered, check->foreign, kernel_dropped, tally.fates[FORWARDED]);
	for (enum drop_reason reason = 0; reason < DROP_REASON_COUNT; reason++)
		printf("%s\"%s\":%" PRIu64, reason ? "," : "", drop_reason_name(reason), tally.fates[reason]);
	printf("}}\n");
	return right;
}
