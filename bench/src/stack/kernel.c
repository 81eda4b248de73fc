/* The kernel's TCP as a client, where hopscope's client cannot choose what is compared.
 *
 *   kernel send HOST PORT MILLISECONDS CONGESTION
 *       connects, sends for that long with that congestion control, then waits until the other end has all of it and closes;
 *       prints {"bytes":N,"ns":N}
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PIECE (128 << 10)

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int connected(const char *host, const char *port, const char *congestion) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  if (inet_pton(AF_INET, host, &to.sin_addr) != 1) fail("address");
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0)
    fail("TCP_CONGESTION");
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) fail("connect");
  return fd;
}

static int send_for(char **argv) {
  static char piece[PIECE];
  int fd = connected(argv[2], argv[3], argv[5]);
  uint64_t began = now_ns(), until = began + strtoull(argv[4], NULL, 10) * 1000000u, bytes = 0;
  while (now_ns() < until) {
    ssize_t sent = send(fd, piece, sizeof piece, MSG_NOSIGNAL);
    if (sent < 0) fail("send");
    bytes += (uint64_t)sent;
  }
  shutdown(fd, SHUT_WR);
  while (recv(fd, piece, sizeof piece, 0) > 0) continue;
  printf("{\"bytes\":%llu,\"ns\":%llu}\n", (unsigned long long)bytes, (unsigned long long)(now_ns() - began));
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 6 && strcmp(argv[1], "send") == 0) return send_for(argv);
  return 2;
}
