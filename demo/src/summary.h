#ifndef DEMO_SUMMARY_H
#define DEMO_SUMMARY_H

#include "run.h"

/* Prints the counters as one JSON object; says whether they add up and the sink found no fault. */
bool summary_print(const struct run *run, const struct worker_thread *threads);

#endif
