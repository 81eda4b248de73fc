/* The running traffic: one thread sends on time, one receives and checks. */
#ifndef DEMO_TRAFFIC_H
#define DEMO_TRAFFIC_H

#include <pthread.h>
#include <stdatomic.h>

#include "packet_socket.h"
#include "stop.h"
#include "traffic_check.h"
#include "traffic_plan.h"

struct traffic_run {
	struct traffic traffic;
	struct traffic_check check;
	struct stop stop;
	struct packet_socket sockets[TRAFFIC_PORTS];
	uint32_t port_count;
	uint64_t packets;
	uint64_t rate_per_s;
	uint64_t window;           /* most packets on their way, 0: no limit */
	const char *ready_file;
	uint8_t *sent;             /* per number: 1 when the kernel took it */
	uint64_t sent_count;
	uint64_t expected_count;   /* that shall come out, of those sent */
	uint64_t refused;
	double sending_s;
	atomic_bool learned;       /* all announcements came out everywhere */
	atomic_bool sender_done;
};

void *traffic_send(void *run);
void *traffic_receive(void *run);
/* Prints the JSON object; says whether the firewall did all right. */
bool traffic_report(struct traffic_run *run);

#endif
