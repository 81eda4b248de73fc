/* One standing connection, a blocking round trip at a time, for as long as it is asked to: the same
 * process before, while and after hooks are attached, so that nothing else differs.
 *
 *   ping HOST PORT SIZE   connects, prints "ready"; for each line "MILLISECONDS" on stdin prints one
 *                         JSON object; ends with stdin
 *   round_trips  of the measured time; all_round_trips: those of the warm-up too
 *   mean_ns, p50_ns  of a round trip; cpu_ns: processor time of this process for each
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SIZE_MAX_BYTES (1 << 20)
#define NS_PER_BIN 5
#define BINS 400000
/* Caches, and the processor's sleep between two windows. */
#define WARM_UP_NS 20e6

static unsigned bins[BINS];
static char buffer[SIZE_MAX_BYTES];
static size_t size;
static int connection;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static double now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void round_trip(void) {
  size_t left = size;
  ssize_t n;
  for (; left > 0; left -= (size_t)n)
    if ((n = send(connection, buffer + size - left, left, MSG_NOSIGNAL)) <= 0) fail("send");
  for (left = size; left > 0; left -= (size_t)n)
    if ((n = recv(connection, buffer, left, 0)) <= 0) fail("recv");
}

static void answer(double last) {
  long trips = 0, warm = 0, seen = 0, median = 0;
  double begin = now_ns(CLOCK_MONOTONIC), before, now, cpu;
  for (; now_ns(CLOCK_MONOTONIC) - begin < WARM_UP_NS; warm++) round_trip();
  memset(bins, 0, sizeof bins);
  cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  begin = before = now_ns(CLOCK_MONOTONIC);
  do {
    long took;
    round_trip();
    now = now_ns(CLOCK_MONOTONIC);
    took = (long)(now - before) / NS_PER_BIN;
    bins[took < BINS ? took : BINS - 1]++;
    before = now;
    trips++;
  } while (now - begin < last);
  cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  while ((seen += bins[median]) < (trips + 1) / 2) median++;
  printf("{\"round_trips\":%ld,\"all_round_trips\":%ld,\"mean_ns\":%.1f,\"p50_ns\":%ld,\"cpu_ns\":%.1f}\n",
         trips, trips + warm, (now - begin) / (double)trips, median * NS_PER_BIN,
         cpu / (double)trips);
  fflush(stdout);
}

int main(int count, char **arguments) {
  struct sockaddr_in at = {.sin_family = AF_INET};
  char line[64];
  int on = 1;
  if (count != 4 || (size = strtoul(arguments[3], NULL, 10)) == 0 || size > SIZE_MAX_BYTES) {
    fprintf(stderr, "usage: ping HOST PORT SIZE\n");
    return 2;
  }
  at.sin_port = htons((uint16_t)atoi(arguments[2]));
  if (inet_pton(AF_INET, arguments[1], &at.sin_addr) != 1) fail("address");
  connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connection < 0 || connect(connection, (struct sockaddr *)&at, sizeof at) != 0) fail("connect");
  if (setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) answer(1e6 * atof(line));
  return 0;
}
