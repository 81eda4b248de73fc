/* Reads one counter of its own thread, again and again, in every way that there is, in turn.
 *
 *   read_counter ROUNDS MILLISECONDS
 *
 * First a line for each way: {"way":…,"event":…,"missing":REASON}, or what the counter grew by over work that is known.
 * Then a line for each window: {"round":…,"way":…,"event":…,"ticks":…}, TSC ticks of one reading. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_PAPI
#include <papi.h>
#endif

#define COUNT_BITS 48
#define CAP_USER_RDPMC (1 << 2)

struct event {
  const char *name, *papi_name;
  struct perf_event_attr attributes;
  int fd, papi_set;
  volatile struct perf_event_mmap_page *page;
  char missing[160], papi_missing[160];
};

static struct event instructions = {
    .name = "instructions",
    .papi_name = "PAPI_TOT_INS",
    .attributes = {.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1, .exclude_hv = 1}};
static struct event switches = {
    .name = "context-switches",
    .papi_name = "perf::CONTEXT-SWITCHES",
    .attributes = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES}};

static inline uint64_t ticks(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

/* The next three are what a probe, a program that links libpapi, and one that has nothing but the descriptor do. The page's
 * lock says whether the kernel wrote to it meanwhile. */
static inline uint64_t by_rdpmc(const struct event *event) {
  volatile struct perf_event_mmap_page *page = event->page;
  uint32_t lock, index, low, high;
  do {
    lock = page->lock;
    index = page->index;
    if (index == 0) return 0;
    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1) : "memory");
  } while (page->lock != lock);
  return (uint64_t)high << 32 | low;
}

static inline uint64_t by_page(const struct event *event) {
  volatile struct perf_event_mmap_page *page = event->page;
  uint64_t count;
  uint32_t lock;
  do {
    lock = page->lock;
    count = (uint64_t)page->offset;
  } while (page->lock != lock);
  return count;
}

static inline uint64_t by_read(const struct event *event) {
  uint64_t count = 0;
  return read(event->fd, &count, sizeof count) == sizeof count ? count : 0;
}

static inline uint64_t by_papi(const struct event *event) {
#ifdef WITH_PAPI
  long long count = 0;
  return PAPI_read(event->papi_set, &count) == PAPI_OK ? (uint64_t)count : 0;
#else
  (void)event;
  return 0;
#endif
}

static inline uint64_t by_nothing(const struct event *event) { return (uintptr_t)event; }

static inline uint64_t by_rdtsc(const struct event *event) {
  (void)event;
  return ticks();
}

/* What every system call takes, whatever it is for. */
static inline uint64_t by_system_call(const struct event *event) {
  (void)event;
  return (uint64_t)syscall(SYS_getppid);
}

/* 100 core cycles, whatever the clock of the core. Not of an immediate: newer cores fold those while renaming. */
static inline uint64_t by_100_adds(const struct event *event) {
  uint64_t x = (uintptr_t)event;
  __asm__ volatile(".rept 100\n\tadd %0, %0\n\t.endr" : "+r"(x));
  return x;
}

/* Each with a loop of its own, so that none pays for a call through a pointer. Where to read is known only when the reading
 * before has its count: otherwise a processor reads several at once, and hides what one takes. */
#define LOOP(read)                                                         \
  static void loop_##read(const struct event *event, uint64_t n) {         \
    uint64_t zero = 0;                                                     \
    while (n--) {                                                          \
      __asm__ volatile("" : "+r"(zero));                                   \
      event = (const void *)((const char *)event + (read(event) & zero));  \
    }                                                                      \
    __asm__ volatile("" : : "r"(event));                                   \
  }                                                                        \
  static uint64_t once_##read(const struct event *event) { return read(event); }
LOOP(by_nothing)
LOOP(by_rdtsc)
LOOP(by_system_call)
LOOP(by_100_adds)
LOOP(by_rdpmc)
LOOP(by_page)
LOOP(by_read)
LOOP(by_papi)
#define WAY(name, event, read) {name, event, loop_##read, once_##read, 0, ""}

static struct way {
  const char *name;
  struct event *event; /* None: a control. */
  void (*loop)(const struct event *, uint64_t);
  uint64_t (*once)(const struct event *);
  uint64_t calls;
  char missing[160];
} ways[] = {
    WAY("empty", NULL, by_nothing),
    WAY("rdtsc", NULL, by_rdtsc),
    WAY("getppid", NULL, by_system_call),
    WAY("100 adds", NULL, by_100_adds),
    WAY("rdpmc", &instructions, by_rdpmc),
    WAY("papi", &instructions, by_papi),
    WAY("read", &instructions, by_read),
    WAY("page", &switches, by_page),
    WAY("papi", &switches, by_papi),
    WAY("read", &switches, by_read),
};
#define WAYS (sizeof ways / sizeof *ways)

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static void open_event(struct event *event) {
  long page = sysconf(_SC_PAGESIZE);
  void *at;
  event->attributes.size = sizeof event->attributes;
  event->attributes.pinned = 1;
  event->fd = (int)syscall(SYS_perf_event_open, &event->attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (event->fd < 0) {
    snprintf(event->missing, sizeof event->missing, "perf_event_open: %s (%s)", strerror(errno), strerrorname_np(errno));
    return;
  }
  at = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, event->fd, 0);
  if (at == MAP_FAILED)
    snprintf(event->missing, sizeof event->missing, "mmap of the event's page: %s (%s)", strerror(errno), strerrorname_np(errno));
  else
    event->page = at;
}

#ifdef WITH_PAPI
/* Of both events. A PAPI that does not know the processor has none of the kernel's, and says only that they do not exist. */
static const char *why_no_component(void) {
  const PAPI_component_info_t *component = PAPI_get_component_info(PAPI_get_component_index("perf_event"));
  return component && component->disabled ? component->disabled_reason : "";
}
#endif

static void open_by_papi(struct event *event, int domain) {
#ifdef WITH_PAPI
  int error, version = PAPI_VER_CURRENT;
  if (!PAPI_is_initialized()) version = PAPI_library_init(version);
  event->papi_set = PAPI_NULL;
  if (version != PAPI_VER_CURRENT) {
    const char *why = version < 0 ? PAPI_strerror(version) : "another version than its header";
    snprintf(event->papi_missing, sizeof event->papi_missing, "PAPI_library_init: %s", why);
    return;
  }
  if ((error = PAPI_set_domain(domain)) != PAPI_OK || (error = PAPI_create_eventset(&event->papi_set)) != PAPI_OK ||
      (error = PAPI_add_named_event(event->papi_set, event->papi_name)) != PAPI_OK ||
      (error = PAPI_start(event->papi_set)) != PAPI_OK) {
    const char *why = why_no_component();
    snprintf(event->papi_missing, sizeof event->papi_missing, "PAPI, %s: %s%s%s", event->papi_name, PAPI_strerror(error),
             *why ? ": " : "", why);
  }
#else
  (void)domain;
  snprintf(event->papi_missing, sizeof event->papi_missing, "built without libpapi");
#endif
}

/* Of this thread, as the scheduler counts them (getrusage(2)). */
static uint64_t times_switched(void) {
  struct rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) fail("getrusage");
  return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* Of the instructions more than this many, of the switches as many. A sleep is one, unless its time is over before it began. */
static uint64_t work(const struct event *event) {
  const struct timespec moment = {.tv_nsec = 1};
  if (event == &switches) {
    uint64_t before = times_switched(), grew;
    do nanosleep(&moment, NULL);
    while ((grew = times_switched() - before) < 10);
    return grew;
  }
  for (int n = 0; n < 1000; n++) by_100_adds(event);
  return 100000;
}

/* A way that cannot read is not timed, nor one that reads something else. */
static void examine(struct way *way) {
  const struct event *event = way->event;
  uint64_t before, grew, least;
  const char *missing;
  if (event == NULL) return;
  missing = way->once == once_by_papi ? event->papi_missing : event->missing;
  if (way->once == once_by_rdpmc && !*missing && !(event->page->capabilities & CAP_USER_RDPMC))
    missing = "the event's page allows no rdpmc (/sys/bus/event_source/devices/cpu/rdpmc)";
  snprintf(way->missing, sizeof way->missing, "%s", missing);
  if (!*missing) {
    before = way->once(event);
    least = work(event);
    grew = (way->once(event) - before) & ((1ull << COUNT_BITS) - 1);
    if (grew >= least && grew < 100 * least) {
      printf("{\"way\":\"%s\",\"event\":\"%s\",\"grew\":%llu,\"at_least\":%llu}\n", way->name, event->name,
             (unsigned long long)grew, (unsigned long long)least);
      return;
    }
    snprintf(way->missing, sizeof way->missing, "it counted %llu where %llu or little more were to be counted",
             (unsigned long long)grew, (unsigned long long)least);
  }
  printf("{\"way\":\"%s\",\"event\":\"%s\",\"missing\":\"%s\"}\n", way->name, event->name, way->missing);
}

static uint64_t now_ns(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) fail("clock_gettime");
  return 1000000000ull * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

static uint64_t took_ns(const struct way *way) {
  uint64_t begin = now_ns();
  way->loop(way->event, way->calls);
  return now_ns() - begin;
}

/* How many calls a window has: of all ways they are about as long. Twice: one may have been interrupted. */
static void warm_up(struct way *way, uint64_t window_ns) {
  way->calls = 64;
  while (2 * took_ns(way) < window_ns || 2 * took_ns(way) < window_ns) way->calls *= 2;
}

static void measure(const struct way *way, unsigned round) {
  uint64_t begin, end;
  begin = ticks();
  way->loop(way->event, way->calls);
  end = ticks();
  printf("{\"round\":%u,\"way\":\"%s\",\"event\":", round, way->name);
  if (way->event) printf("\"%s\"", way->event->name);
  else printf("null");
  printf(",\"calls\":%llu,\"ticks\":%.3f}\n", (unsigned long long)way->calls, (double)(end - begin) / (double)way->calls);
}

int main(int count, char **arguments) {
  unsigned rounds = count == 3 ? (unsigned)atoi(arguments[1]) : 0;
  uint64_t window_ns = count == 3 ? 1000000ull * strtoull(arguments[2], NULL, 10) : 0;
  cpu_set_t here;
  if (rounds == 0 || window_ns == 0) {
    fprintf(stderr, "usage: read_counter ROUNDS MILLISECONDS\n");
    return 2;
  }
  CPU_ZERO(&here);
  CPU_SET((size_t)sched_getcpu(), &here);
  if (sched_setaffinity(0, sizeof here, &here) != 0) fail("sched_setaffinity");
  open_event(&instructions);
  open_event(&switches);
#ifdef WITH_PAPI
  open_by_papi(&instructions, PAPI_DOM_USER);
  open_by_papi(&switches, PAPI_DOM_ALL);
#else
  open_by_papi(&instructions, 0);
  open_by_papi(&switches, 0);
#endif
  for (size_t n = 0; n < WAYS; n++) examine(&ways[n]);
  for (size_t n = 0; n < WAYS; n++)
    if (!*ways[n].missing) warm_up(&ways[n], window_ns);
  for (unsigned round = 0; round < rounds; round++)
    for (size_t n = 0; n < WAYS; n++) {
      const struct way *way = &ways[(n + round) % WAYS];
      if (!*way->missing) measure(way, round);
    }
  return 0;
}
