#include "module.h"

HELPER void packet_drop(struct worker *worker, enum drop_reason reason)
{
	worker->counters.drops[reason]++;
}
