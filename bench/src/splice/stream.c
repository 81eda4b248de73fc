/* Bytes that go one way, as fast as they do.
 *
 *   stream sink                          listens, answers `ready PORT`, reads; ends with its stdin
 *   stream send PORT SIZE MILLISECONDS   writes of SIZE bytes for so long; prints one JSON object: bytes taken in each
 *                                        tenth of a second
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK (1 << 20)
#define SLICES_MAX 1024
#define SLICE_NS 100000000ull

static char bytes[CHUNK];

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000ull * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

static void wait_for(int fd, short what) {
  struct pollfd one = {.fd = fd, .events = what};
  if (poll(&one, 1, -1) < 0) fail("poll");
}

static int sink(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 16) != 0 ||
      getsockname(listener, (struct sockaddr *)&at, &size) != 0)
    fail("listen");
  printf("ready %u\n", ntohs(at.sin_port));
  fflush(stdout);
  for (;;) {
    struct pollfd both[] = {{.fd = listener, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    if (poll(both, 2, -1) < 0) fail("poll");
    if (both[1].revents && read(STDIN_FILENO, bytes, 1) <= 0) return 0;
    if (!both[0].revents) continue;
    int fd = accept(listener, NULL, NULL);
    for (;;) {
      ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
      if (n < 0 && errno == EAGAIN)
        wait_for(fd, POLLIN);
      else if (n <= 0)
        break;
    }
    close(fd);
  }
}

static int send_to(const char *port, size_t size, uint64_t milliseconds) {
  static uint64_t slices[SLICES_MAX];
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  uint64_t most = milliseconds * 1000000 / SLICE_NS;
  at.sin_port = htons((uint16_t)atoi(port));
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (size == 0 || size > sizeof bytes || most == 0 || most > SLICES_MAX) return 2;
  if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0) fail("connect");
  uint64_t begun = now_ns(), slice;
  while ((slice = (now_ns() - begun) / SLICE_NS) < most) {
    ssize_t n = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN)
      wait_for(fd, POLLOUT);
    else if (n <= 0)
      fail("send");
    else
      slices[slice] += (uint64_t)n;
  }
  printf("{\"slice_ms\":%llu,\"bytes\":[", SLICE_NS / 1000000);
  for (uint64_t i = 0; i < most; i++) printf("%s%llu", i ? "," : "", (unsigned long long)slices[i]);
  printf("]}\n");
  return 0;
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "sink") == 0) return sink();
  if (count == 5 && strcmp(arguments[1], "send") == 0)
    return send_to(arguments[2], strtoul(arguments[3], NULL, 10), strtoull(arguments[4], NULL, 10));
  fprintf(stderr, "usage: stream sink | stream send PORT SIZE MILLISECONDS\n");
  return 2;
}
