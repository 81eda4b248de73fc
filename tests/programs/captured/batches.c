/* Calls whose arguments, members, elements and results follow from their number alone, so that
 * every captured value can be checked. Commands on standard input:
 *   run N      N calls; a timer's signal handler makes further ones when started with "signals"
 *   fork N     children that make N calls each
 *   wild N     N calls with pointers that lead nowhere
 * Each answers "done CALLS" with the number of calls made by this process so far. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PACKETS 32
#define IN_HANDLER (1ull << 40)

struct packet { uint16_t len; uint32_t seq; char payload[26]; };
struct frame {
	uint32_t n;
	int16_t port;
	uint64_t when;
	struct packet packets[PACKETS];
	struct frame *next;
	struct packet *first;
	unsigned flags : 3;
	double weight;
};

volatile uint64_t sink;
static uint64_t next_id, handler_id;

__attribute__((noinline)) int64_t
take(struct frame *frame, int queue, uint64_t id, uint8_t small, short five, long six)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < frame->n; i++)
		sum += frame->packets[i].seq;
	sink = sum + (uint64_t)(queue + small + five + six);
	return -(int64_t)id;
}

static int failures;

/* Loads what it has only on one of its ways, while numbers of its own lie in the red zone. */
__attribute__((noinline)) int look(struct frame *frame, uint64_t id)
{
	volatile uint64_t kept[12];
	int port;
	if (id % 2)
		return -1;
	for (uint64_t i = 0; i < 12; i++)
		kept[i] = id + i;
	port = frame->port;
	__asm__ volatile("" : "+r"(port) : : "memory");
	for (uint64_t i = 0; i < 12; i++)
		failures += kept[i] != id + i;
	sink = id;
	return port;
}

/* Never looks behind the pointer itself. */
__attribute__((noinline)) void wild(void *where, uint64_t id) { sink = (uint64_t)where ^ id; }

/* More elements than one call may record. */
__attribute__((noinline)) void many(const uint32_t *items, int n) { sink = (uint64_t)items + n; }

static uint64_t fill(struct frame *frame, uint64_t id)
{
	frame->n = id % (PACKETS + 1);
	frame->port = (int16_t)-(int64_t)(id % 1000);
	frame->when = id * 0x9e3779b97f4a7c15ull;
	frame->next = frame;
	frame->first = frame->packets;
	for (uint32_t i = 0; i < frame->n; i++)
		frame->packets[i].seq = (uint32_t)(id * 64 + i);
	return id;
}

static void call(struct frame *frame, uint64_t id)
{
	fill(frame, id);
	if (take(frame, (int)-id, id, (uint8_t)id, (short)-id, (long)(3 * id)) != -(int64_t)id)
		failures++;
	if (look(frame, id) != (id % 2 ? -1 : frame->port))
		failures++;
}

static void handler(int sig)
{
	static struct frame own;
	(void)sig;
	call(&own, IN_HANDLER + handler_id++);
}

static void start_timer(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 200 }, { 0, 200 } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void *page(int protection)
{
	return mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* By id % 6: nothing at 0, 1: in the first page, 2: no access, 3: no longer mapped,
 * 4: the last 4 bytes before such a page, 5: 4 bytes across its beginning. */
static void wild_calls(uint64_t n)
{
	uint32_t *gone = page(PROT_READ | PROT_WRITE);
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *closed = page(PROT_NONE);
	uint32_t last = 0x12345678;
	munmap(gone, 4096);
	munmap(two + 4096, 4096);
	memcpy(two + 4092, &last, 4);
	void *where[6] = { NULL, (void *)0x10, closed, gone, two + 4092, two + 4094 };
	static uint32_t items[300];
	for (uint32_t i = 0; i < 300; i++)
		items[i] = __builtin_bswap32(7 * i);
	for (uint64_t id = 0; id < n; id++) {
		wild(where[id % 6], id);
		many(items, (int)(id % 310) - 5);
	}
	munmap(closed, 4096);
	munmap(two, 4096);
}

int main(int argc, char **argv)
{
	static struct frame frame;
	char line[64];
	uint64_t n;
	const char *ready = getenv("READY_FILE");
	if (argc > 1 && !strcmp(argv[1], "signals"))
		start_timer();
	if (ready)
		fclose(fopen(ready, "w"));
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "run %lu", &n) == 1) {
			while (n--)
				call(&frame, next_id++);
		} else if (sscanf(line, "fork %lu", &n) == 1) {
			for (int children = 0; children < 4; children++) {
				pid_t child = fork();
				int status = 0;
				if (child == 0) {
					for (uint64_t id = 0; id < n; id++)
						call(&frame, id);
					_exit(failures != 0);
				}
				while (waitpid(child, &status, 0) < 0)
					;
				failures += status != 0;
				call(&frame, next_id++);
			}
		} else if (sscanf(line, "wild %lu", &n) == 1) {
			wild_calls(n);
		}
		printf("done %lu %lu %d\n", next_id, handler_id, failures);
		fflush(stdout);
	}
	return failures != 0;
}
