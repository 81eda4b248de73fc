/* The least that a round trip over TCP takes in user space: blocking sockets, one connection, no
 * bookkeeping but when each ended. What hopscope's client takes beyond this is its own cost.
 *
 *   rr server SIZE        listens, prints "ready PORT", sends every SIZE bytes back until stdin ends
 *   rr client HOST PORT SIZE MILLISECONDS
 *                         prints one JSON object: round trips, and nanoseconds of each: on average
 *                         and the median
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE_MAX_BYTES (1 << 20)
#define NS_PER_BIN 5
#define BINS 200000

static unsigned bins[BINS];

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static int whole(int fd, char *at, size_t size, int sends) {
  while (size > 0) {
    ssize_t n = sends ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);
    if (n <= 0) return 0;
    at += n;
    size -= (size_t)n;
  }
  return 1;
}

static void no_delay(int fd) {
  int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
}

static size_t size;

static void *answer(void *argument) {
  int fd = (int)(intptr_t)argument;
  static __thread char buffer[SIZE_MAX_BYTES];
  no_delay(fd);
  while (whole(fd, buffer, size, 0) && whole(fd, buffer, size, 1)) continue;
  close(fd);
  return NULL;
}

__attribute__((noreturn)) static void *accept_all(void *argument) {
  int listener = (int)(intptr_t)argument;
  for (;;) {
    pthread_t thread;
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) fail("accept");
    if (pthread_create(&thread, NULL, answer, (void *)(intptr_t)fd) != 0) fail("thread");
    pthread_detach(thread);
  }
}

static int serve(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t length = sizeof at;
  pthread_t thread;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, length) != 0) fail("bind");
  if (listen(listener, 16) != 0) fail("listen");
  if (getsockname(listener, (struct sockaddr *)&at, &length) != 0) fail("getsockname");
  if (pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)listener) != 0) fail("thread");
  printf("ready %d\n", ntohs(at.sin_port));
  fflush(stdout);
  while (getchar() != EOF) continue;
  return 0;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ask(char **arguments) {
  static char buffer[SIZE_MAX_BYTES];
  struct sockaddr_in at = {.sin_family = AF_INET};
  double last = 1e6 * atof(arguments[3]), begin, before, now;
  long trips = 0, seen = 0, median = 0;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  at.sin_port = htons((uint16_t)atoi(arguments[1]));
  if (inet_pton(AF_INET, arguments[0], &at.sin_addr) != 1) fail("address");
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) fail("connect");
  no_delay(fd);
  memset(buffer, 'x', size);
  begin = before = now_ns();
  do {
    long took;
    if (!whole(fd, buffer, size, 1) || !whole(fd, buffer, size, 0)) fail("round trip");
    now = now_ns();
    took = (long)(now - before) / NS_PER_BIN;
    bins[took < BINS ? took : BINS - 1]++;
    before = now;
    trips++;
  } while (now - begin < last);
  while ((seen += bins[median]) < (trips + 1) / 2) median++;
  printf("{\"round_trips\":%ld,\"mean_ns\":%.1f,\"p50_ns\":%ld}\n", trips,
         (now - begin) / (double)trips, median * NS_PER_BIN);
  return 0;
}

int main(int count, char **arguments) {
  int is_server = count == 3 && strcmp(arguments[1], "server") == 0;
  int is_client = count == 6 && strcmp(arguments[1], "client") == 0;
  if (is_server || is_client) size = strtoul(arguments[is_server ? 2 : 4], NULL, 10);
  if (size > 0 && size <= SIZE_MAX_BYTES) return is_server ? serve() : ask(arguments + 2);
  fprintf(stderr, "usage: rr server SIZE | rr client HOST PORT SIZE MILLISECONDS\n");
  return 2;
}
