#include "summary.h"

#include <inttypes.h>
#include <stdio.h>

static void print_counters(const struct counters *counters, uint32_t ports)
{
	printf("{\"frames\":%" PRIu64 ",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"forwarded\":%" PRIu64
	       ",\"flooded\":%" PRIu64 ",\"drops\":{",
	       counters->frames, counters->packets, counters->bytes, counters->forwarded, counters->flooded);
	for (enum drop_reason reason = 0; reason < DROP_REASON_COUNT; reason++)
		printf("%s\"%s\":%" PRIu64, reason ? "," : "", drop_reason_name(reason), counters->drops[reason]);
	printf("},\"ports_out\":[");
	for (uint32_t port = 0; port < ports; port++)
		printf("%s{\"packets\":%" PRIu64 ",\"refused\":%" PRIu64 "}", port ? "," : "", counters->out_packets[port],
		       counters->out_refused[port]);
	printf("]}");
}

static void print_io(const struct io_counts *io)
{
	printf("\"io\":{\"kernel_dropped\":%" PRIu64 ",\"oversized\":%" PRIu64 ",\"own_outgoing\":%" PRIu64
	       ",\"checksum_unknown\":%" PRIu64 ",\"checked\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"missing\":%" PRIu64 "}",
	       io->kernel_dropped, io->oversized, io->own_outgoing, io->checksum_unknown, io->checked, io->wrong,
	       io->missing);
}

static void io_counts_add(struct io_counts *total, const struct io_counts *part)
{
	total->kernel_dropped += part->kernel_dropped;
	total->oversized += part->oversized;
	total->own_outgoing += part->own_outgoing;
	total->checksum_unknown += part->checksum_unknown;
	total->checked += part->checked;
	total->wrong += part->wrong;
	total->missing += part->missing;
}

bool summary_print(const struct run *run, const struct worker_thread *threads)
{
	struct counters total = { 0 };
	struct io_counts io = { 0 };
	uint32_t workers = run->options->workers;

	for (uint32_t i = 0; i < workers; i++) {
		struct io_counts part;
		run->queues[i]->io->counts(run->queues[i], &part);
		io_counts_add(&io, &part);
		counters_add(&total, &threads[i].worker.counters);
	}
	bool adds_up = total.packets == total.forwarded + counters_dropped(&total);
	printf("{\"type\":\"summary\",\"schema\":1,\"name\":\"hopscope-demo\",\"source\":\"%s\",\"workers\":%u,"
	       "\"burst\":%u,\"elapsed_s\":%.6f,\"packets_per_s\":%.0f,",
	       run->queues[0]->io->name, workers, run->options->burst, run->elapsed_s,
	       (double)total.packets / run->elapsed_s);
	printf("\"total\":");
	print_counters(&total, run->ports);
	printf(",\"by_worker\":[");
	for (uint32_t i = 0; i < workers; i++) {
		printf("%s", i ? "," : "");
		print_counters(&threads[i].worker.counters, run->ports);
	}
	printf("],");
	print_io(&io);
	/* No call counts here: every module runs once a frame, so they would only repeat `frames`. */
	printf(",\"modules\":[");
	for (int i = 0; i < MODULE_COUNT; i++)
		printf("%s{\"name\":\"%s\",\"object\":\"%s\"}", i ? "," : "", run->pipeline.modules[i].name,
		       run->pipeline.objects[i]);
	printf("],\"adds_up\":%s}\n", adds_up ? "true" : "false");
	return adds_up && io.wrong == 0 && io.missing == 0;
}
