#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet_build.h"
#include "rules.h"

static const char usage[] =
	"hopscope-demo: a layer-2 firewall of ten modules, to be measured\n"
	"\n"
	"  hopscope-demo --source memory --seconds 5\n"
	"  hopscope-demo --port veth0 --port veth1 --workers 2\n"
	"\n"
	"Packets\n"
	"  --source WHICH          packet: AF_PACKET; memory: generated and checked; fuzz: damaged, to test the modules\n"
	"                          (default: packet with --port, else memory)\n"
	"  --port INTERFACE        2 to 4 times; needs root\n"
	"  --workers N             1 or 2 threads (1)\n"
	"  --burst N               most packets a frame, 1 to 256 (256)\n"
	"  --poll                  ask for packets again and again instead of sleeping\n"
	"  --ring-slots N          packets that wait at a port at most, a power of two from 32 on (4096)\n"
	"  --packets N             stop after N packets\n"
	"  --seconds S             stop after S seconds\n"
	"  --seed N                of the generated packets (1)\n"
	"  --size BYTES            of a packet of the memory source, 64 to 1514 (64)\n"
	"  --denied PERCENT        of its flows (25)\n"
	"  --slf N                 spatial locality: packets of a flow back to back (1: ABCABC, 2: AABBCC)\n"
	"Modules\n"
	"  --rules FILE            access list, see --print-rules for the format\n"
	"  --rules-seed N          of the generated access list (1)\n"
	"  --rules-count N         rules to generate (1000)\n"
	"  --print-rules           print the access list and stop\n"
	"  --mac-age SECONDS       until a silent address is forgotten (300)\n"
	"  --session-bytes N       a record for each flow in both feature arcs, all of it updated by each packet (0)\n"
	"  --plugins DIRECTORY     (beside the executable)\n"
	"Planted faults, to test what finds them\n"
	"  --spin-every N          each Nth packet, whatever it is, makes l2_forward spin\n"
	"  --spin-port PORT        each packet to this port makes acl_lookup spin\n"
	"  --spin-us U             for so many microseconds (500)\n"
	"  --hold-every N          each Nth time that packets wait, they are let wait\n"
	"  --hold-us U             for so many microseconds (500)\n"
	"  --control SOCKET        serve commands (datagrams) in the first worker: each walks a table\n"
	"  --control-entries N     of so many entries, a power of two (1048576)\n"
	"Scripts\n"
	"  --ready-file FILE       written with our pid when packets may come\n"
	"\n"
	"Stops cleanly on SIGINT and SIGTERM; counters go to stdout as JSON. SIGUSR1: packets so far.\n"
	"Exit codes: 0 ok, 1 the check of the packets failed, 2 usage or environment.\n";

enum { SOURCE = 256, PORT, WORKERS, BURST, POLL, RING_SLOTS, PACKETS, SECONDS, SEED, SIZE, DENIED, SLF, RULES,
       RULES_SEED, RULES_COUNT, PRINT_RULES, MAC_AGE, SESSION_BYTES, PLUGINS, SPIN_EVERY, SPIN_PORT,
       SPIN_US, HOLD_EVERY, HOLD_US, CONTROL, CONTROL_ENTRIES, READY_FILE, HELP };

static const struct option table[] = {
	{ "source", required_argument, NULL, SOURCE },
	{ "port", required_argument, NULL, PORT },
	{ "workers", required_argument, NULL, WORKERS },
	{ "burst", required_argument, NULL, BURST },
	{ "poll", no_argument, NULL, POLL },
	{ "ring-slots", required_argument, NULL, RING_SLOTS },
	{ "packets", required_argument, NULL, PACKETS },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "seed", required_argument, NULL, SEED },
	{ "size", required_argument, NULL, SIZE },
	{ "denied", required_argument, NULL, DENIED },
	{ "slf", required_argument, NULL, SLF },
	{ "rules", required_argument, NULL, RULES },
	{ "rules-seed", required_argument, NULL, RULES_SEED },
	{ "rules-count", required_argument, NULL, RULES_COUNT },
	{ "print-rules", no_argument, NULL, PRINT_RULES },
	{ "mac-age", required_argument, NULL, MAC_AGE },
	{ "session-bytes", required_argument, NULL, SESSION_BYTES },
	{ "plugins", required_argument, NULL, PLUGINS },
	{ "spin-every", required_argument, NULL, SPIN_EVERY },
	{ "spin-port", required_argument, NULL, SPIN_PORT },
	{ "spin-us", required_argument, NULL, SPIN_US },
	{ "hold-every", required_argument, NULL, HOLD_EVERY },
	{ "hold-us", required_argument, NULL, HOLD_US },
	{ "control", required_argument, NULL, CONTROL },
	{ "control-entries", required_argument, NULL, CONTROL_ENTRIES },
	{ "ready-file", required_argument, NULL, READY_FILE },
	{ "help", no_argument, NULL, HELP },
	{ NULL, 0, NULL, 0 },
};

static void refuse(const char *why)
{
	fprintf(stderr, "hopscope-demo: %s; see --help\n", why);
	exit(EXIT_USAGE);
}

static void check(struct options *options, const char *source)
{
	if (!source)
		source = options->port_count ? "packet" : "memory";
	if (strcmp(source, "packet") == 0)
		options->source = SOURCE_PACKET;
	else if (strcmp(source, "memory") == 0)
		options->source = SOURCE_MEMORY;
	else if (strcmp(source, "fuzz") == 0)
		options->source = SOURCE_FUZZ;
	else
		refuse("--source is packet, memory or fuzz");
	if (options->source != SOURCE_PACKET && options->port_count)
		refuse("--port goes with --source packet");
	if (options->source == SOURCE_PACKET && options->port_count < 2)
		refuse("--source packet needs two ports or more");
}

void options_parse(struct options *options, int argc, char **argv)
{
	const char *source = NULL;
	int which;
	int index;

	*options = (struct options){ .workers = 1, .burst = FRAME_PACKETS_MAX, .ring_slots = 4096, .rules_seed = 1, .rules_count = 1000,
				     .seed = 1, .packet_bytes = 64, .denied_percent = 25, .locality = 1,
				     .mac_age_s = 300, .spin_us = 500, .hold_us = 500,
				     .control_entries = 1 << 20 };
	while ((which = getopt_long(argc, argv, "", table, &index)) != -1) {
		const char *name = which == '?' ? "" : table[index].name;
		switch (which) {
		case SOURCE: source = optarg; break;
		case PORT:
			if (options->port_count == PORTS_MAX)
				refuse("too many ports, 4 at most");
			options->ports[options->port_count++] = optarg;
			break;
		case WORKERS: options->workers = (uint32_t)option_number(name, optarg, 1, WORKERS_MAX); break;
		case BURST: options->burst = (uint32_t)option_number(name, optarg, 1, FRAME_PACKETS_MAX); break;
		case POLL: options->poll = true; break;
		case RING_SLOTS:
			options->ring_slots = (uint32_t)option_number(name, optarg, RING_SLOTS_MIN, RING_SLOTS_MAX);
			if (options->ring_slots & (options->ring_slots - 1))
				refuse("--ring-slots is a power of two");
			break;
		case PACKETS: options->packets = option_number(name, optarg, 1, UINT64_MAX - 1); break;
		case SECONDS: options->seconds = option_number(name, optarg, 1, 86400); break;
		case SEED: options->seed = option_number(name, optarg, 0, UINT64_MAX); break;
		case SIZE: options->packet_bytes = (uint32_t)option_number(name, optarg, BUILD_BYTES_MIN, 1514); break;
		case DENIED: options->denied_percent = (uint32_t)option_number(name, optarg, 0, 100); break;
		case SLF: options->locality = (uint32_t)option_number(name, optarg, 1, LOCALITY_MAX); break;
		case RULES: options->rules_file = optarg; break;
		case RULES_SEED: options->rules_seed = option_number(name, optarg, 0, UINT64_MAX); break;
		case RULES_COUNT: options->rules_count = (uint32_t)option_number(name, optarg, 0, RULES_MAX); break;
		case PRINT_RULES: options->print_rules = true; break;
		case MAC_AGE: options->mac_age_s = option_number(name, optarg, 1, UINT32_MAX); break;
		case SESSION_BYTES: options->session_bytes = option_number(name, optarg, 0, SESSION_BYTES_MAX); break;
		case SPIN_EVERY: options->spin_every = option_number(name, optarg, 1, UINT64_MAX); break;
		case SPIN_PORT: options->spin_port = (uint32_t)option_number(name, optarg, 1, UINT16_MAX); break;
		case SPIN_US: options->spin_us = option_number(name, optarg, 1, 1000000); break;
		case HOLD_EVERY: options->hold_every = option_number(name, optarg, 1, UINT64_MAX); break;
		case HOLD_US: options->hold_us = option_number(name, optarg, 1, 1000000); break;
		case CONTROL: options->control = optarg; break;
		case CONTROL_ENTRIES:
			options->control_entries = option_number(name, optarg, 2, 1 << 26);
			if (options->control_entries & (options->control_entries - 1))
				refuse("--control-entries is a power of two");
			break;
		case PLUGINS: options->plugins = optarg; break;
		case READY_FILE: options->ready_file = optarg; break;
		case HELP: fputs(usage, stdout); exit(0);
		default: exit(EXIT_USAGE);
		}
	}
	if (optind < argc)
		refuse("takes no arguments beside options");
	check(options, source);
}
