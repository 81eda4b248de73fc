#include "rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

bool rules_permit(const struct rule_set *set, const struct five_tuple *flow)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		if ((flow->source & prefix_mask(rule->source_prefix)) == rule->source &&
		    (flow->destination & prefix_mask(rule->destination_prefix)) == rule->destination &&
		    (rule->protocol == PROTOCOL_ANY || rule->protocol == flow->protocol) && rule_ports_match(rule, flow))
			return rule->permit;
	}
	return false;
}

static void random_ports(uint64_t *state, uint16_t *first, uint16_t *last)
{
	switch (random_below(state, 4)) {
	case 0: /* one port */
		*first = *last = (uint16_t)random_below(state, 65536);
		break;
	case 1: /* a range */
		*first = (uint16_t)random_below(state, 60000);
		*last = (uint16_t)(*first + 1 + random_below(state, 5000));
		break;
	default:
		*first = 0;
		*last = UINT16_MAX;
	}
}

/* Four sites of sixteen subnets: few enough that rules overlap, as only then their order matters. */
static uint32_t random_address(uint64_t *state, uint32_t network, uint8_t prefix)
{
	uint32_t site = random_below(state, 4), subnet = random_below(state, 16), host = random_below(state, 256);
	return (network | site << 16 | subnet << 8 | host) & prefix_mask(prefix);
}

int rules_generate(struct rule_set *set, uint64_t seed, uint32_t count)
{
	/* Prefix pairs of a site's list: hosts, subnets, sites; wide ones are rare, as they shadow others. */
	static const uint8_t shapes[8][2] = {
		{ 32, 32 }, { 32, 24 }, { 24, 32 }, { 24, 24 }, { 24, 16 }, { 16, 24 }, { 16, 32 }, { 32, 16 },
	};
	static const uint8_t protocols[4] = { 6, 17, 6, PROTOCOL_ANY };

	set->rules = calloc(count ? count : 1, sizeof *set->rules);
	if (!set->rules) {
		fprintf(stderr, "hopscope-demo: no memory for %u rules\n", count);
		return -1;
	}
	set->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct rule *rule = &set->rules[i];
		const uint8_t *shape = shapes[random_below(&seed, 8)];
		rule->source_prefix = shape[0];
		rule->destination_prefix = shape[1];
		rule->source = random_address(&seed, 0x0a000000, shape[0]);
		rule->destination = random_address(&seed, 0xac100000, shape[1]);
		rule->protocol = protocols[random_below(&seed, 4)];
		if (rule->protocol == PROTOCOL_ANY) {
			/* Ports have no meaning without a protocol that has them. */
			rule->source_port_last = rule->destination_port_last = UINT16_MAX;
		} else {
			random_ports(&seed, &rule->source_port_first, &rule->source_port_last);
			random_ports(&seed, &rule->destination_port_first, &rule->destination_port_last);
		}
		rule->permit = random_below(&seed, 10) < 7;
	}
	return 0;
}

static bool read_ports(const char *text, uint16_t *first, uint16_t *last)
{
	unsigned int low, high;
	char rest;
	if (strcmp(text, "any") == 0) {
		*first = 0;
		*last = UINT16_MAX;
		return true;
	}
	int fields = sscanf(text, "%5u-%5u%c", &low, &high, &rest);
	if (fields == 1 && !strchr(text, '-'))
		high = low;
	else if (fields != 2)
		return false;
	if (low > high || high > UINT16_MAX)
		return false;
	*first = (uint16_t)low;
	*last = (uint16_t)high;
	return true;
}

static bool read_prefix(const char *text, uint32_t *address, uint8_t *length)
{
	char dotted[16];
	unsigned int bits;
	char rest;
	struct in_addr parsed;
	if (sscanf(text, "%15[0-9.]/%2u%c", dotted, &bits, &rest) != 2 || bits > 32)
		return false;
	if (inet_pton(AF_INET, dotted, &parsed) != 1)
		return false;
	*length = (uint8_t)bits;
	*address = ntohl(parsed.s_addr) & prefix_mask(*length);
	return true;
}

static bool read_rule(const char *line, struct rule *rule)
{
	char verdict[8], protocol[8], source[24], source_ports[12], destination[24], destination_ports[12], rest;
	if (sscanf(line, "%7s %7s %23s %11s %23s %11s %c", verdict, protocol, source, source_ports, destination,
		   destination_ports, &rest) != 6)
		return false;
	rule->permit = strcmp(verdict, "permit") == 0;
	if (!rule->permit && strcmp(verdict, "deny") != 0)
		return false;
	if (strcmp(protocol, "any") == 0) {
		rule->protocol = PROTOCOL_ANY;
	} else {
		char *end;
		unsigned long number = strtoul(protocol, &end, 10);
		if (*end || end == protocol || number == 0 || number > UINT8_MAX)
			return false;
		rule->protocol = (uint8_t)number;
	}
	return read_prefix(source, &rule->source, &rule->source_prefix) &&
	       read_ports(source_ports, &rule->source_port_first, &rule->source_port_last) &&
	       read_prefix(destination, &rule->destination, &rule->destination_prefix) &&
	       read_ports(destination_ports, &rule->destination_port_first, &rule->destination_port_last);
}

int rules_read(struct rule_set *set, const char *path)
{
	char line[256];
	uint32_t number = 0;
	FILE *file = fopen(path, "re");
	if (!file) {
		fprintf(stderr, "hopscope-demo: rules file %s: %s\n", path, strerror(errno));
		return -1;
	}
	set->count = 0;
	set->rules = calloc(RULES_MAX, sizeof *set->rules);
	if (!set->rules) {
		fprintf(stderr, "hopscope-demo: no memory for rules\n");
		fclose(file);
		return -1;
	}
	while (fgets(line, sizeof line, file)) {
		number++;
		size_t blank = strspn(line, " \t\r\n");
		if (line[blank] == '\0' || line[blank] == '#')
			continue;
		if (set->count == RULES_MAX || !read_rule(line, &set->rules[set->count])) {
			fprintf(stderr,
				"hopscope-demo: %s:%u: not a rule (permit|deny PROTOCOL SOURCE/LEN PORTS DESTINATION/LEN PORTS), "
				"or more than %u rules\n",
				path, number, RULES_MAX);
			fclose(file);
			rules_free(set);
			return -1;
		}
		set->count++;
	}
	fclose(file);
	return 0;
}

static void print_half(FILE *out, uint32_t address, uint8_t prefix, uint16_t first, uint16_t last)
{
	struct in_addr network = { .s_addr = htonl(address) };
	char dotted[INET_ADDRSTRLEN];
	inet_ntop(AF_INET, &network, dotted, sizeof dotted);
	fprintf(out, " %s/%u %u-%u", dotted, prefix, first, last);
}

void rules_print(const struct rule_set *set, FILE *out)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct rule *rule = &set->rules[i];
		fputs(rule->permit ? "permit" : "deny", out);
		if (rule->protocol == PROTOCOL_ANY)
			fputs(" any", out);
		else
			fprintf(out, " %u", rule->protocol);
		print_half(out, rule->source, rule->source_prefix, rule->source_port_first, rule->source_port_last);
		print_half(out, rule->destination, rule->destination_prefix, rule->destination_port_first,
			   rule->destination_port_last);
		fputc('\n', out);
	}
}

void rules_free(struct rule_set *set)
{
	free(set->rules);
	set->rules = NULL;
	set->count = 0;
}
