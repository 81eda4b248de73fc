/* hopscope-demo: a run-to-completion layer-2 firewall, made to be measured. */
#include <stdio.h>
#include <stdlib.h>

#include "run.h"
#include "summary.h"

static int open_queues(struct run *run, const struct rule_set *rules)
{
	const struct options *options = run->options;

	run->budget.limit = options->packets ? options->packets : UINT64_MAX;
	run->ports = options->source == SOURCE_PACKET ? options->port_count : 2;
	if (options->source == SOURCE_PACKET)
		return io_packet_open(run->queues, options->workers, options->ports, options->port_count, options->poll,
				      options->ring_slots,
				      &run->budget, run->stop.fd);
	struct memory_options memory = { .rules = rules, .budget = &run->budget, .seed = options->seed,
					 .packet_bytes = options->packet_bytes,
					 .denied_percent = options->denied_percent,
					 .locality = options->locality };
	for (uint32_t i = 0; i < options->workers; i++)
		if ((options->source == SOURCE_FUZZ ? io_fuzz_open : io_memory_open)(&run->queues[i], &memory) != 0)
			return -1;
	return 0;
}

static void close_all(struct run *run, struct rule_set *rules)
{
	for (uint32_t i = 0; i < WORKERS_MAX; i++)
		if (run->queues[i])
			run->queues[i]->io->close(run->queues[i]);
	control_close(run->control);
	pipeline_close(&run->pipeline);
	rules_free(rules);
}

int main(int argc, char **argv)
{
	static struct worker_thread threads[WORKERS_MAX];
	static struct run run;
	struct options options;
	struct rule_set rules;

	options_parse(&options, argc, argv);
	run.options = &options;
	if ((options.rules_file ? rules_read(&rules, options.rules_file)
				: rules_generate(&rules, options.rules_seed, options.rules_count)) != 0)
		return EXIT_USAGE;
	if (options.print_rules) {
		rules_print(&rules, stdout);
		rules_free(&rules);
		return 0;
	}
	struct settings settings = { .rules = &rules, .mac_age_s = options.mac_age_s,
				     .session_bytes = options.session_bytes,
				     .spin_us = options.spin_us, .spin_every = options.spin_every,
				     .spin_port = options.spin_port };
	if (options.control && !(run.control = control_open(options.control, options.control_entries))) {
		rules_free(&rules);
		return EXIT_USAGE;
	}
	int signals = stop_signals();
	if (signals < 0 || stop_open(&run.stop) != 0 || pipeline_open(&run.pipeline, options.plugins, &settings) != 0 ||
	    open_queues(&run, &rules) != 0 || run_workers(&run, threads, signals) != 0) {
		close_all(&run, &rules);
		return EXIT_USAGE;
	}
	bool right = summary_print(&run, threads);
	close_all(&run, &rules);
	return right ? 0 : 1;
}
