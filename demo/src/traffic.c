/* hopscope-demo-traffic: proves packet by packet that what stands between its ports forwards
 * what the rules permit, once and unchanged, to the right port, and nothing else. */
#define _GNU_SOURCE
#include "traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define RING_SLOTS 4096

static const char usage[] =
	"hopscope-demo-traffic --left [NAMESPACE:]INTERFACE --right [NAMESPACE:]INTERFACE\n"
	"\n"
	"  --bystander [NAMESPACE:]INTERFACE  a third port, where only broadcasts may come out\n"
	"  --packets N      (100000)\n"
	"  --rate N         packets a second, both directions together (30000)\n"
	"  --window N       most packets on their way, so that a slow machine loses none (0: no limit)\n"
	"  --seed N         (1)\n"
	"  --denied PERCENT of the flows (25)\n"
	"  --rules FILE | --rules-seed N, --rules-count N   as given to hopscope-demo\n"
	"  --ready-file FILE  written when the bridge has learned all addresses\n"
	"\n"
	"Exit codes: 0 all packets as expected, 1 not, 2 usage or environment.\n";

struct arguments {
	const char *places[TRAFFIC_PORTS];
	uint64_t seed, rules_seed;
	uint32_t denied_percent, rules_count;
	const char *rules_file;
};

enum { LEFT = 256, RIGHT, BYSTANDER, PACKETS, RATE, WINDOW, SEED, DENIED, RULES, RULES_SEED, RULES_COUNT, READY_FILE, HELP };

static const struct option table[] = {
	{ "left", required_argument, NULL, LEFT },
	{ "right", required_argument, NULL, RIGHT },
	{ "bystander", required_argument, NULL, BYSTANDER },
	{ "packets", required_argument, NULL, PACKETS },
	{ "rate", required_argument, NULL, RATE },
	{ "window", required_argument, NULL, WINDOW },
	{ "seed", required_argument, NULL, SEED },
	{ "denied", required_argument, NULL, DENIED },
	{ "rules", required_argument, NULL, RULES },
	{ "rules-seed", required_argument, NULL, RULES_SEED },
	{ "rules-count", required_argument, NULL, RULES_COUNT },
	{ "ready-file", required_argument, NULL, READY_FILE },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static void parse(struct arguments *arguments, struct traffic_run *run, int argc, char **argv)
{
	int which;
	int index;

	*arguments = (struct arguments){ .seed = 1, .rules_seed = 1, .rules_count = 1000, .denied_percent = 25 };
	run->packets = 100000;
	run->rate_per_s = 30000;
	while ((which = getopt_long(argc, argv, "", table, &index)) != -1) {
		const char *name = which == '?' ? "" : table[index].name;
		switch (which) {
		case LEFT: arguments->places[PORT_LEFT] = optarg; break;
		case RIGHT: arguments->places[PORT_RIGHT] = optarg; break;
		case BYSTANDER: arguments->places[PORT_BYSTANDER] = optarg; break;
		case PACKETS: run->packets = option_number(name, optarg, 1000, 100000000); break;
		case RATE: run->rate_per_s = option_number(name, optarg, 1, 10000000); break;
		case WINDOW: run->window = option_number(name, optarg, 0, 4096); break;
		case SEED: arguments->seed = option_number(name, optarg, 0, UINT64_MAX); break;
		case DENIED: arguments->denied_percent = (uint32_t)option_number(name, optarg, 0, 100); break;
		case RULES: arguments->rules_file = optarg; break;
		case RULES_SEED: arguments->rules_seed = option_number(name, optarg, 0, UINT64_MAX); break;
		case RULES_COUNT: arguments->rules_count = (uint32_t)option_number(name, optarg, 0, RULES_MAX); break;
		case READY_FILE: run->ready_file = optarg; break;
		case HELP: fputs(usage, stdout); exit(0);
		default: exit(EXIT_USAGE);
		}
	}
	if (optind < argc || !arguments->places[PORT_LEFT] || !arguments->places[PORT_RIGHT]) {
		fputs(usage, stderr);
		exit(EXIT_USAGE);
	}
}

static int enter_namespace(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
	if (result != 0)
		fprintf(stderr, "network namespace %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return result;
}

/* A socket stays in the namespace that it was made in, so one process can be at all ends. */
static int open_place(struct packet_socket *socket, const char *place)
{
	char path[256], home[64];
	const char *colon = strchr(place, ':');

	if (!colon)
		return packet_socket_open(socket, place, RING_SLOTS, NULL);
	snprintf(path, sizeof path, "/run/netns/%.*s", (int)(colon - place), place);
	snprintf(home, sizeof home, "/proc/%d/ns/net", (int)getpid());
	int home_fd = open(home, O_RDONLY | O_CLOEXEC);
	if (home_fd < 0 || enter_namespace(path) != 0)
		return -1;
	int result = packet_socket_open(socket, colon + 1, RING_SLOTS, NULL);
	if (setns(home_fd, CLONE_NEWNET) != 0)
		result = -1;
	close(home_fd);
	return result;
}

static int open_all(struct traffic_run *run, const struct arguments *arguments, struct rule_set *rules)
{
	if ((arguments->rules_file ? rules_read(rules, arguments->rules_file)
				   : rules_generate(rules, arguments->rules_seed, arguments->rules_count)) != 0)
		return -1;
	run->port_count = arguments->places[PORT_BYSTANDER] ? 3 : 2;
	if (traffic_plan(&run->traffic, rules, arguments->seed, arguments->denied_percent, run->port_count == 3) != 0 ||
	    traffic_check_open(&run->check, &run->traffic, run->packets) != 0)
		return -1;
	run->sent = calloc(run->packets, 1);
	if (!run->sent)
		return -1;
	for (uint32_t port = 0; port < run->port_count; port++)
		if (open_place(&run->sockets[port], arguments->places[port]) != 0)
			return -1;
	return stop_open(&run->stop);
}

int main(int argc, char **argv)
{
	static struct traffic_run run;
	struct arguments arguments;
	struct rule_set rules;
	pthread_t sender, receiver;

	parse(&arguments, &run, argc, argv);
	int signals = stop_signals();
	if (signals < 0 || open_all(&run, &arguments, &rules) != 0)
		return EXIT_USAGE;
	if (pthread_create(&receiver, NULL, traffic_receive, &run) != 0 ||
	    pthread_create(&sender, NULL, traffic_send, &run) != 0) {
		fprintf(stderr, "hopscope-demo-traffic: can't start threads\n");
		return EXIT_USAGE;
	}
	/* A signal ends the sending early; the check is still made. */
	stop_wait(&run.stop, signals, 0, NULL, NULL);
	pthread_join(sender, NULL);
	pthread_join(receiver, NULL);
	bool right = traffic_report(&run);
	for (uint32_t port = 0; port < run.port_count; port++)
		packet_socket_close(&run.sockets[port]);
	traffic_check_close(&run.check);
	free(run.sent);
	rules_free(&rules);
	return right ? 0 : 1;
}
