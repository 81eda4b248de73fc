#include "traffic_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int traffic_check_open(struct traffic_check *check, const struct traffic *traffic, uint64_t packets)
{
	*check = (struct traffic_check){ .traffic = traffic, .packets = packets };
	check->seen = calloc(packets, 1);
	if (!check->seen) {
		fprintf(stderr, "hopscope-demo-traffic: no memory for %llu packets\n", (unsigned long long)packets);
		return -1;
	}
	return 0;
}

void traffic_check_packet(struct traffic_check *check, enum traffic_port port, const uint8_t *data, uint32_t length)
{
	struct traffic_packet sent;
	uint64_t number;
	uint8_t bit = (uint8_t)(1u << port);

	if (!traffic_packet_number(data, length, &number) || number >= check->packets) {
		check->foreign++;
		return;
	}
	atomic_fetch_add_explicit(&check->received, 1, memory_order_relaxed);
	traffic_packet_build(check->traffic, number, &sent);
	if (length != sent.length || memcmp(data, sent.data, length) != 0)
		check->changed++;
	if (check->seen[number] & bit)
		check->duplicated++;
	check->seen[number] |= bit;
	if (sent.fate != FORWARDED)
		check->denied_passed++;
	else if (!(sent.expected_ports & bit))
		check->misdirected++;
	if (sent.flow != NO_FLOW) {
		if (number < check->last[sent.flow])
			check->reordered++;
		else
			check->last[sent.flow] = number;
	}
	if (number < TRAFFIC_ANNOUNCEMENTS)
		atomic_fetch_add(&check->announced, 1);
}

void traffic_check_close(struct traffic_check *check)
{
	free(check->seen);
}
