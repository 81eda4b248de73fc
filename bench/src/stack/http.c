/* The server that the stack's is set against: the same responses by the same rules, on the kernel's TCP with epoll, one
 * thread, one read and one write for each request.
 *
 *   http PORT BODY_BYTES sleep|spin    prints "ready PORT", serves until stdin ends
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 256
#define CONNECTIONS 65536
#define PIECE 65536

/* Of each connection: bytes of the empty line that were seen, and what is left to be sent. */
static struct {
  unsigned char matched;
  size_t left;
} connections[CONNECTIONS];

static char *answer;
static size_t answer_bytes;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

/* Requests that end in these bytes. */
static size_t requests(unsigned char *matched, const char *bytes, size_t size) {
  static const char end[] = "\r\n\r\n";
  size_t count = 0;
  for (size_t at = 0; at < size; at++) {
    if (bytes[at] == end[*matched]) {
      if (++*matched == 4) {
        *matched = 0;
        count++;
      }
    } else {
      *matched = bytes[at] == '\r';
    }
  }
  return count;
}

/* 0: the connection is over. */
static int serve(int fd) {
  static char piece[PIECE];
  for (;;) {
    while (connections[fd].left > 0) {
      size_t whole = connections[fd].left % answer_bytes;
      size_t now = whole ? whole : answer_bytes;
      ssize_t sent = send(fd, answer + answer_bytes - now, now, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN;
      connections[fd].left -= (size_t)sent;
    }
    ssize_t got = recv(fd, piece, sizeof piece, 0);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return 0;
    connections[fd].left = requests(&connections[fd].matched, piece, (size_t)got) * answer_bytes;
    /* A short read: nothing more is there, and what comes is told. */
    if (connections[fd].left == 0 && got < (ssize_t)sizeof piece) return 1;
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) fail("limit of files");
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) fail("limit of files");
  int spins = strcmp(argv[3], "spin") == 0;
  size_t body_bytes = (size_t)atol(argv[2]);
  answer = malloc(256 + body_bytes);
  if (!answer) fail("memory");
  answer_bytes = (size_t)sprintf(
      answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", body_bytes);
  memset(answer + answer_bytes, 'x', body_bytes);
  answer_bytes += body_bytes;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0) fail("bind");
  if (listen(listener, 4096) != 0) fail("listen");
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  event.data.fd = 0;
  epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
  printf("ready %s\n", argv[1]);
  fflush(stdout);
  for (;;) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(epoll, events, EVENTS, spins ? 0 : -1);
    for (int n = 0; n < ready; n++) {
      int fd = events[n].data.fd;
      if (fd == 0) {
        printf("{}\n");
        return 0;
      }
      if (fd != listener) {
        if (!serve(fd)) close(fd);
        continue;
      }
      for (int got; (got = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        if (got >= CONNECTIONS) {
          close(got);
          continue;
        }
        setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections[got].matched = 0;
        connections[got].left = 0;
        event.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP;
        event.data.fd = got;
        epoll_ctl(epoll, EPOLL_CTL_ADD, got, &event);
      }
    }
  }
}
