/* A PMU of a machine that has none: events that count nothing, on counters that do not exist. What is real is all that
 * the kernel does with them: groups, pinning, the page that user space reads (index, lock), and putting them on and off
 * whenever their thread gets and loses its processor. A thread that executes rdpmc faults: nothing has allowed it here.
 * It takes the place of the processor's own (PERF_TYPE_RAW, as arch/x86/events/core.c). */
#include <linux/module.h>
#include <linux/perf_event.h>

#define EVENTS 10

static int hop_init(struct perf_event *event)
{
	u32 type = event->attr.type;
	if (type != PERF_TYPE_HARDWARE && type != PERF_TYPE_RAW)
		return -ENOENT;
	if (event->attr.config >= EVENTS || event->cpu >= 0 || is_sampling_event(event))
		return -EINVAL;
	event->hw.idx = (int)event->attr.config;
	event->hw.flags |= PERF_EVENT_FLAG_USER_READ_CNT;
	return 0;
}

static void hop_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
	perf_event_update_userpage(event);
}

static void hop_stop(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	perf_event_update_userpage(event);
}

static int hop_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		hop_start(event, flags);
	return 0;
}

static void hop_del(struct perf_event *event, int flags) { hop_stop(event, flags); }
static void hop_read(struct perf_event *event) { }
/* One above what rdpmc is given: 0 would say that there is none. */
static int hop_index(struct perf_event *event) { return event->hw.idx + 1; }

static struct pmu hop_pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_hw_context,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT,
	.event_init = hop_init,
	.add = hop_add,
	.del = hop_del,
	.start = hop_start,
	.stop = hop_stop,
	.read = hop_read,
	.event_idx = hop_index,
};

static int __init hop_begin(void) { return perf_pmu_register(&hop_pmu, "cpu", PERF_TYPE_RAW); }
static void __exit hop_end(void) { perf_pmu_unregister(&hop_pmu); }

module_init(hop_begin);
module_exit(hop_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Counters that count nothing");
