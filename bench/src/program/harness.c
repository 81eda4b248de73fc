/* The measured process. Told what to do by lines on stdin, answers each with one line on stdout:
 *   run PHASE MILLISECONDS   -> phase calls_per_batch batches min p10 median p90 calls
 *   pace PHASE CALLS_PER_SECOND MILLISECONDS -> phase calls wall_ns behind
 *   threads SPINNING SLEEPING -> started SPINNING SLEEPING (they run until the process ends)
 *   watch                     -> watching (calls the functions for threads from then on)
 *   gap                       -> gap NANOSECONDS, the longest since the last answer between two
 *                                looks at the clock, while watching
 * Ticks per call. It pins itself, so that an attached tool is compared with the same process on
 * the same CPU before and after. */
#define _GNU_SOURCE
#include "harness.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define BATCHES_MAX 65536
static double batch_ticks[BATCHES_MAX];
static long sink = 1;

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static double tsc_hz(void)
{
    long ns0 = now_ns(), ns1;
    unsigned long t0 = ticks();
    do
        ns1 = now_ns();
    while (ns1 - ns0 < 50000000);
    return (double)(ticks() - t0) * 1e9 / (double)(ns1 - ns0);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static unsigned long one_batch(const struct phase *p, long rounds)
{
    unsigned long t0 = ticks();
    sink = p->run(sink, rounds);
    return ticks() - t0;
}

/* A batch of 0.1 to 0.4 ms is long enough to forget the two clock reads around it and short
 * enough that most batches see no interrupt and no other process. */
static void run(const struct phase *p, long milliseconds, double hz)
{
    long unit = p->calls_per_round ? p->calls_per_round : 1;
    long rounds = 1, done = 1, batches = 0;
    double wanted = hz * 0.0001;
    sink = p->run(sink, 1);
    for (;;) {
        unsigned long t = one_batch(p, rounds);
        done += rounds;
        if (t >= wanted || rounds > 1L << 40)
            break;
        rounds *= 2;
    }
    long end = now_ns() + milliseconds * 1000000;
    do {
        batch_ticks[batches++] = (double)one_batch(p, rounds) / (double)(rounds * unit);
        done += rounds;
    } while (now_ns() < end && batches < BATCHES_MAX);
    qsort(batch_ticks, batches, sizeof *batch_ticks, by_value);
    printf("%s %ld %ld %.3f %.3f %.3f %.3f %ld\n", p->name, rounds * unit, batches, batch_ticks[0],
           batch_ticks[batches / 10], batch_ticks[batches / 2], batch_ticks[batches * 9 / 10],
           done * unit);
}

/* A steady rate: bursts of about 50 us, then waiting on the clock. `behind` counts the bursts
 * that began late because the one before took longer than its share. */
static void pace(const struct phase *p, double per_second, long milliseconds)
{
    long unit = p->calls_per_round ? p->calls_per_round : 1;
    long rounds = (long)(per_second * 50e-6 / (double)unit);
    if (rounds < 1)
        rounds = 1;
    double burst_ns = (double)(rounds * unit) * 1e9 / per_second;
    long calls = 0, behind = 0, bursts = 0, start = now_ns(), now = start;
    long end = start + milliseconds * 1000000;
    while (now < end) {
        sink = p->run(sink, rounds);
        calls += rounds * unit;
        bursts++;
        long due = start + (long)(burst_ns * (double)bursts);
        now = now_ns();
        if (now > due)
            behind++;
        while (now < due)
            now = now_ns();
    }
    printf("%s %ld %ld %ld\n", p->name, calls, now - start, behind);
}

static void *spin(void *unused)
{
    long x = 1;
    for (;;)
        x = round_for_threads(x);
    return unused;
}

/* What a stop is to the process itself: a look at the clock after each round. */
static void watch(void)
{
    struct pollfd asked = {0, POLLIN, 0};
    char line[256];
    long x = 1, longest = 0;
    printf("watching\n");
    for (long last = now_ns();;) {
        x = round_for_threads(x);
        long now = now_ns();
        if (now - last > longest)
            longest = now - last;
        last = now;
        if (poll(&asked, 1, 0) <= 0)
            continue;
        if (!fgets(line, sizeof line, stdin))
            exit(0);
        printf("gap %ld\n", longest);
        longest = 0;
        last = now_ns();
    }
}

static void *nap(void *unused)
{
    struct timespec millisecond = {0, 1000000};
    long x = 1;
    for (;;) {
        x = round_for_threads(x);
        nanosleep(&millisecond, 0);
    }
    return unused;
}

static void threads(long spinning, long sleeping)
{
    /* The measured thread is pinned; these may run anywhere. */
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        CPU_SET(cpu, &all);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setaffinity_np(&attr, sizeof all, &all);
    pthread_attr_setstacksize(&attr, 65536);
    for (long i = 0; i < spinning + sleeping; i++) {
        pthread_t t;
        if (pthread_create(&t, &attr, i < spinning ? spin : nap, 0)) {
            printf("error cannot start thread %ld\n", i);
            return;
        }
    }
    printf("started %ld %ld\n", spinning, sleeping);
}

static const struct phase *find(const char *name)
{
    for (const struct phase *p = phases; p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return 0;
}

static int pin(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) ? -1 : cpu;
}

int main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int cpu = pin(1);
    if (cpu < 0)
        cpu = pin(0);
    double hz = tsc_hz();
    setvbuf(stdout, 0, _IOLBF, 0);
    printf("ready %d %d %.0f\n", (int)getpid(), cpu, hz);
    char line[256], name[64];
    while (fgets(line, sizeof line, stdin)) {
        long a, b;
        double rate;
        const struct phase *p;
        if (sscanf(line, "run %63s %ld", name, &a) == 2 && (p = find(name)))
            run(p, a, hz);
        else if (sscanf(line, "pace %63s %lf %ld", name, &rate, &a) == 3 && (p = find(name)))
            pace(p, rate, a);
        else if (sscanf(line, "threads %ld %ld", &a, &b) == 2)
            threads(a, b);
        else if (!strcmp(line, "watch\n"))
            watch();
        else
            printf("error not understood: %s", line);
    }
    return 0;
}
