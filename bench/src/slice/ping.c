/* One standing connection, a blocking round trip at a time, for as long as it is asked to: the same
 * process before, while and after hooks are attached, so that nothing else differs.
 *
 *   ping HOST PORT SIZE   connects, prints "ready"; for each line "MILLISECONDS" on stdin prints one
 *                         JSON object; ends with stdin
 *   ping HOST 0 SIZE NETNS   answers itself, at HOST in that namespace, and prints "ready PORT": the
 *                         one thread never waits for itself
 *   round_trips  of the measured time; all_round_trips: those of the warm-up too
 *   mean_ns, p50_ns  of a round trip; cpu_ns: processor time of this process for each
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_BYTES (1 << 20)
#define NS_PER_BIN 5
#define BINS 400000
/* Caches, and the processor's sleep between two windows. */
#define WARM_UP_NS 20e6

static unsigned bins[BINS];
static char buffer[SIZE_MAX_BYTES];
static size_t size;
static int connection;
/* The other end, if it is here. */
static int own_peer = -1;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static double now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void give(int to) {
  size_t left = size;
  ssize_t n;
  for (; left > 0; left -= (size_t)n)
    if ((n = send(to, buffer + size - left, left, MSG_NOSIGNAL)) <= 0) fail("send");
}

static void take(int from) {
  size_t left = size;
  ssize_t n;
  for (; left > 0; left -= (size_t)n) {
    while ((n = recv(from, buffer, left, own_peer < 0 ? 0 : MSG_DONTWAIT)) < 0 && errno == EAGAIN)
      ;
    if (n <= 0) fail("recv");
  }
}

static void round_trip(void) {
  give(connection);
  if (own_peer >= 0) {
    take(own_peer);
    give(own_peer);
  }
  take(connection);
}

/* Leaves this thread where it was. */
static int listening(const char *netns, struct sockaddr_in *at) {
  int here = open("/proc/self/ns/net", O_RDONLY), there = open(netns, O_RDONLY), listener;
  socklen_t length = sizeof *at;
  if (here < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) fail(netns);
  listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)at, length) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, (struct sockaddr *)at, &length) != 0)
    fail("listen");
  if (setns(here, CLONE_NEWNET) != 0) fail("setns");
  close(here);
  close(there);
  return listener;
}

static void no_delay(int socket) {
  int on = 1;
  if (setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
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
  int listener = -1;
  if (count < 4 || count > 5 || (size = strtoul(arguments[3], NULL, 10)) == 0 || size > SIZE_MAX_BYTES) {
    fprintf(stderr, "usage: ping HOST PORT SIZE [NETNS]\n");
    return 2;
  }
  at.sin_port = htons((uint16_t)atoi(arguments[2]));
  if (inet_pton(AF_INET, arguments[1], &at.sin_addr) != 1) fail("address");
  if (count == 5) listener = listening(arguments[4], &at);
  connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connection < 0 || connect(connection, (struct sockaddr *)&at, sizeof at) != 0) fail("connect");
  no_delay(connection);
  if (listener < 0) {
    printf("ready\n");
  } else {
    if ((own_peer = accept(listener, NULL, NULL)) < 0) fail("accept");
    no_delay(own_peer);
    close(listener);
    printf("ready %d\n", ntohs(at.sin_port));
  }
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) answer(1e6 * atof(line));
  return 0;
}
