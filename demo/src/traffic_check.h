/* What came out, held against what went in. */
#ifndef DEMO_TRAFFIC_CHECK_H
#define DEMO_TRAFFIC_CHECK_H

#include <stdatomic.h>

#include "traffic_plan.h"

struct traffic_check {
	const struct traffic *traffic;
	uint64_t packets;        /* numbers below this may exist */
	uint8_t *seen;           /* per number: bit n, came out of port n */
	uint64_t last[TRAFFIC_FLOWS];
	_Atomic uint64_t announced; /* announcements that came out, at all ports together */
	_Atomic uint64_t received;
	uint64_t foreign;        /* not ours */
	uint64_t changed;        /* other bytes than we sent */
	uint64_t duplicated;
	uint64_t denied_passed;  /* should have been dropped */
	uint64_t misdirected;    /* forwarded, but not to this port */
	uint64_t reordered;      /* behind a later packet of its flow */
};

/* 0, or -1 after a line on stderr. */
int traffic_check_open(struct traffic_check *check, const struct traffic *traffic, uint64_t packets);
void traffic_check_packet(struct traffic_check *check, enum traffic_port port, const uint8_t *data, uint32_t length);
void traffic_check_close(struct traffic_check *check);

#endif
