/* A forwarder whose delay is known: `forward IN OUT NANOSECONDS` sends each frame that arrives at
 * IN out of OUT, so long after it was received, and ends with stdin. It spins: a sleep would add
 * what nobody knows. Prints "ready", and at the end one JSON object: frames in and out, and how much
 * later than asked they left (median and 99th percentile, nanoseconds).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HELD 4096
#define FRAME 2048
#define LATE_MAX 100000

static struct {
  uint64_t due;
  ssize_t length;
  char bytes[FRAME];
} held[HELD];
static uint32_t late_by[LATE_MAX + 1];

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000u * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

static int port(const char *name, int receives) {
  struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
  int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = 8 << 20;
  at.sll_ifindex = (int)if_nametoindex(name);
  if (fd < 0 || at.sll_ifindex == 0) fail(name);
  if (!receives) at.sll_protocol = 0;
  if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) fail("bind");
  if (receives && setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0)
    fail("PACKET_IGNORE_OUTGOING");
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
  return fd;
}

static uint64_t part(uint64_t sent, double share) {
  uint64_t wanted = (uint64_t)(share * (double)sent), seen = 0;
  for (uint64_t ns = 0; ns <= LATE_MAX; ns++) {
    seen += late_by[ns];
    if (seen > wanted) return ns;
  }
  return LATE_MAX;
}

int main(int count, char **arguments) {
  uint64_t delay, first = 0, next = 0, received = 0, sent = 0, round = 0;
  int in, out;
  if (count != 4) {
    fprintf(stderr, "usage: forward IN OUT NANOSECONDS\n");
    return 2;
  }
  in = port(arguments[1], 1);
  out = port(arguments[2], 0);
  delay = strtoull(arguments[3], NULL, 10);
  puts("ready");
  fflush(stdout);
  for (;;) {
    if (next - first < HELD) {
      ssize_t length = recv(in, held[next % HELD].bytes, FRAME, MSG_DONTWAIT);
      if (length > 0) {
        held[next % HELD].length = length;
        held[next % HELD].due = now_ns() + delay;
        next++;
        received++;
      } else if (errno != EAGAIN && errno != EINTR && errno != ENETDOWN) {
        fail("recv");
      }
    }
    while (first < next) {
      uint64_t now = now_ns(), late;
      if (now < held[first % HELD].due) break;
      late = now - held[first % HELD].due;
      if (send(out, held[first % HELD].bytes, (size_t)held[first % HELD].length, 0) < 0) {
        if (errno == ENOBUFS || errno == EAGAIN) break;
        fail("send");
      }
      late_by[late < LATE_MAX ? late : LATE_MAX]++;
      first++;
      sent++;
    }
    /* Looking at stdin costs as much as a packet: now and then, and when nothing is held. */
    if (first == next && ++round % 1024 == 0) {
      struct pollfd closed = {.fd = 0, .events = POLLIN};
      char byte;
      if (poll(&closed, 1, 0) > 0 && read(0, &byte, 1) <= 0) break;
    }
  }
  printf("{\"received\":%llu,\"sent\":%llu,\"late_p50_ns\":%llu,\"late_p99_ns\":%llu}\n",
         (unsigned long long)received, (unsigned long long)sent,
         (unsigned long long)part(sent, 0.5), (unsigned long long)part(sent, 0.99));
  return 0;
}
