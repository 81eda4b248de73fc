/* Standing connections, one message under way on each, in one thread: as little as it takes, so that it is
 * the server that is measured. Every byte is compared.
 *
 *   ask HOST PORT CONNECTIONS SIZE MILLISECONDS [WARM_UP_MILLISECONDS]
 *   HOST may be the path of an AF_UNIX socket; PORT is not used then
 *   prints one JSON object: requests answered, seconds, p50_ns and p99_ns of a round trip, failed
 *   connections, answers with other bytes
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (128 << 10)
/* Logarithmic bins: 64 to a doubling, 1.1 % each. */
#define SUB_BITS 6
#define BINS (64 << SUB_BITS)
/* Connections have got their windows, processors are awake. */
#define WARM_UP_MS 20
/* A busy machine may let a server stand still for longer than a window; only what hangs is waited for so
 * long. */
#define WATCHDOG_NS 10000000000ull

struct connection {
  int fd;
  size_t sent, received;
  uint64_t begun, answers;
};

static char message[CHUNK], answer[CHUNK];
static size_t size;
static uint64_t bins[BINS];
static uint64_t requests, failed, wrong, counted_from, counted_until;
static size_t unanswered;
static int epoll;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000ull * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

static unsigned bin_of(uint64_t ns) {
  unsigned top = 63 - (unsigned)__builtin_clzll(ns | 1);
  if (top <= SUB_BITS) return (unsigned)ns;
  return ((top - SUB_BITS) << SUB_BITS) + (unsigned)(ns >> (top - SUB_BITS));
}

static uint64_t value_of(unsigned bin) {
  unsigned top = bin >> SUB_BITS;
  if (top <= 1) return bin;
  return (uint64_t)((bin & ((1 << SUB_BITS) - 1)) + (1 << SUB_BITS)) << (top - 1);
}

static uint64_t percentile(double share) {
  uint64_t seen = 0, all = 0;
  unsigned bin = 0;
  for (unsigned i = 0; i < BINS; i++) all += bins[i];
  while (bin < BINS && (seen += bins[bin]) < share * (double)all) bin++;
  return value_of(bin);
}

static void watch(struct connection *c, int how, uint32_t what) {
  struct epoll_event event = {.events = what, .data.ptr = c};
  if (epoll_ctl(epoll, how, c->fd, &event) != 0) fail("epoll_ctl");
}

static void end(struct connection *c) {
  failed++;
  close(c->fd);
  c->fd = -1;
}

/* As far as it goes; whether the connection waits for room. */
static int push(struct connection *c) {
  while (c->sent < size) {
    ssize_t n = send(c->fd, message + c->sent, size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return 1;
    if (n <= 0) return end(c), 0;
    c->sent += (size_t)n;
  }
  return 0;
}

static void turn(struct connection *c, uint32_t events) {
  int was_full = c->sent < size;
  while (c->fd >= 0 && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
    size_t most = size - c->received;
    ssize_t n = recv(c->fd, answer, most, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      end(c);
      return;
    }
    if (memcmp(answer, message + c->received, (size_t)n) != 0) wrong++;
    c->received += (size_t)n;
    if (c->received < size) {
      if ((size_t)n < most) break;
      continue;
    }
    uint64_t now = now_ns();
    if (c->answers++ == 0) unanswered--;
    if (now >= counted_from && now < counted_until) {
      bins[bin_of(now - c->begun)]++;
      requests++;
    }
    c->begun = now;
    c->sent = c->received = 0;
    break;
  }
  if (c->fd < 0) return;
  int is_full = c->sent < size ? push(c) : 0;
  if (c->fd >= 0 && is_full != was_full) watch(c, EPOLL_CTL_MOD, EPOLLIN | (is_full ? EPOLLOUT : 0));
}

union address {
  struct sockaddr any;
  struct sockaddr_in in;
  struct sockaddr_un un;
};

static union address address_of(const char *host, const char *port) {
  union address at = {.in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))}};
  if (host[0] == '/') {
    at.un.sun_family = AF_UNIX;
    snprintf(at.un.sun_path, sizeof at.un.sun_path, "%s", host);
  } else if (inet_pton(AF_INET, host, &at.in.sin_addr) != 1) {
    fail("address");
  }
  return at;
}

static void open_to(const union address *at, struct connection *c) {
  int is_tcp = at->any.sa_family == AF_INET, on = 1;
  c->fd = socket(at->any.sa_family, SOCK_STREAM, 0);
  if (c->fd < 0 || connect(c->fd, &at->any, is_tcp ? sizeof at->in : sizeof at->un) != 0) fail("connect");
  if (is_tcp && setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("TCP_NODELAY");
  watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

int main(int count, char **arguments) {
  static struct epoll_event events[1024];
  struct rlimit limit;
  if ((count != 6 && count != 7) || (size = strtoul(arguments[4], NULL, 10)) == 0 || size > CHUNK) {
    fprintf(stderr, "usage: ask HOST PORT CONNECTIONS SIZE MILLISECONDS [WARM_UP_MILLISECONDS]\n");
    return 2;
  }
  union address at = address_of(arguments[1], arguments[2]);
  size_t connections = strtoul(arguments[3], NULL, 10);
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  for (size_t i = 0; i < size; i++) message[i] = (char)(i * 131 + (i >> 8));
  struct connection *all = calloc(connections, sizeof *all);
  if ((epoll = epoll_create1(0)) < 0 || all == NULL) fail("epoll");
  for (size_t i = 0; i < connections; i++) open_to(&at, &all[i]);
  unanswered = connections;
  counted_from = now_ns() + 1000000ull * (count > 6 ? strtoul(arguments[6], NULL, 10) : WARM_UP_MS);
  counted_until = counted_from + 1000000ull * strtoul(arguments[5], NULL, 10);
  for (size_t i = 0; i < connections; i++) {
    all[i].begun = now_ns();
    if (push(&all[i])) watch(&all[i], EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
  }
  uint64_t now;
  while ((now = now_ns()) < counted_until || (unanswered > failed && now < counted_until + WATCHDOG_NS)) {
    int ready = epoll_wait(epoll, events, 1024, 10);
    for (int i = 0; i < ready; i++) {
      struct connection *c = events[i].data.ptr;
      if (c->fd >= 0) turn(c, events[i].events);
    }
  }
  for (size_t i = 0; i < connections; i++)
    if (all[i].fd >= 0 && all[i].answers == 0) failed++;
  printf("{\"requests\":%llu,\"seconds\":%.6f,\"p50_ns\":%llu,\"p99_ns\":%llu,\"failed\":%llu,\"wrong\":%llu}\n",
         (unsigned long long)requests, (double)(counted_until - counted_from) / 1e9,
         (unsigned long long)percentile(0.5), (unsigned long long)percentile(0.99),
         (unsigned long long)failed, (unsigned long long)wrong);
  return 0;
}
