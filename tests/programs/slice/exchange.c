/* Numbered messages there and back, and what this end knows of each.
 *
 *   exchange tcp|udp server ADDRESS PORT          answers each, until the client says that it ends;
 *                                                 returns when it listens, a child goes on
 *   exchange tcp|udp client ADDRESS PORT COUNT
 *
 * A message is "hopslice", the number and who sent it as 8 hexadecimal digits and a letter, and
 * fill. The client's message N has FIRST + 2N bytes, its answer one more: the length alone tells
 * which it is. Each end writes a line per message to stdout,
 *
 *   sent|received NUMBER client|server BYTES BEFORE_NS AFTER_NS TID
 *
 * the two instants CLOCK_MONOTONIC around the system call (of recv: around the last one).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 100, HEADER = 17, MOST = 60000 };
static const unsigned long END = 0xffffffff;
static int tcp;
static char message[MOST];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static unsigned long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static void say(const char *what, unsigned long number, char who, size_t bytes,
                unsigned long before) {
  unsigned long after = now_ns();
  printf("%s %lu %s %zu %lu %lu %d\n", what, number, who == 'c' ? "client" : "server", bytes,
         before, after, gettid());
}

static size_t length(unsigned long number, char who) {
  return number == END ? HEADER : FIRST + 2 * number + (who == 's');
}

static void give(int fd, const struct sockaddr *to, socklen_t to_len, unsigned long number,
                 char who) {
  size_t bytes = length(number, who);
  char header[HEADER + 1];
  memset(message, '.', bytes);
  snprintf(header, sizeof header, "hopslice%08lx%c", number, who);
  memcpy(message, header, HEADER);
  unsigned long before = now_ns();
  if (sendto(fd, message, bytes, MSG_NOSIGNAL, to, to_len) != (ssize_t)bytes)
    fail("send");
  if (number != END)
    say("sent", number, who, bytes, before);
}

/* The number of the message; END also for a connection that was closed. */
static unsigned long take(int fd, struct sockaddr *from, socklen_t *from_len, char who) {
  size_t have = 0, want = HEADER;
  unsigned long number = END, before = 0;
  while (have < want) {
    before = now_ns();
    ssize_t got = recvfrom(fd, message + have, sizeof message - have, 0, from, from_len);
    if (got <= 0)
      return got ? (fail("recv"), END) : END;
    have += got;
    if (have >= HEADER) {
      if (memcmp(message, "hopslice", 8) || message[16] != who)
        fail("a foreign message");
      char digits[9] = "";
      memcpy(digits, message + 8, 8);
      number = strtoul(digits, NULL, 16);
      want = length(number, who);
    }
  }
  if (number != END)
    say("received", number, who, have, before);
  return number;
}

static int serve(int fd) {
  if (fork())
    return 0;
  if (tcp && (fd = accept(fd, NULL, NULL)) < 0)
    fail("accept");
  for (;;) {
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof peer;
    struct sockaddr *from = tcp ? NULL : (struct sockaddr *)&peer;
    unsigned long number = take(fd, from, tcp ? NULL : &peer_len, 'c');
    if (number == END)
      return 0;
    give(fd, from, tcp ? 0 : peer_len, number, 's');
  }
}

int main(int argc, char **argv) {
  if (argc < 5 || (tcp = !strcmp(argv[1], "tcp")) + !strcmp(argv[1], "udp") != 1) {
    fputs("exchange tcp|udp server|client ADDRESS PORT [COUNT]\n", stderr);
    return 2;
  }
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(argv[4]))};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[4]))};
  int is_six = inet_pton(AF_INET6, argv[3], &six.sin6_addr) == 1;
  if (!is_six && inet_pton(AF_INET, argv[3], &four.sin_addr) != 1)
    fail("address");
  struct sockaddr *address = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
  socklen_t size = is_six ? sizeof six : sizeof four;
  int fd = socket(address->sa_family, tcp ? SOCK_STREAM : SOCK_DGRAM, 0), one = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one))
    fail("socket");
  if (!strcmp(argv[2], "server")) {
    if (bind(fd, address, size) || (tcp && listen(fd, 1)))
      fail("bind");
    return serve(fd);
  }
  if (connect(fd, address, size))
    fail("connect");
  unsigned long count = strtoul(argv[5], NULL, 10);
  for (unsigned long number = 0; number < count; number++) {
    give(fd, NULL, 0, number, 'c');
    if (take(fd, NULL, NULL, 's') != number)
      fail("another answer");
  }
  give(fd, NULL, 0, END, 'c');
  return 0;
}
