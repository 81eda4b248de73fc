/* The server that the stack's is set against: the same responses by the same rules, on the kernel's TCP with epoll, one
 * thread, one read and one write for each request.
 *
 *   http PORT BODY_BYTES sleep|spin    prints "ready PORT", serves until stdin ends
 *
 * With `Connection: close` in the piece that ends a request, the connection is closed behind its response.
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
#define CLOSE "Connection: close"

/* Of each connection: bytes of the empty line that were seen, and what is left to be sent. */
static struct {
  unsigned char matched;
  unsigned char closes;
  size_t left;
} connections[CONNECTIONS];

struct answer {
  char *bytes;
  size_t size;
};
/* The second one says that it is the last. */
static struct answer answers[2];

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
      struct answer answer = answers[connections[fd].closes];
      size_t whole = connections[fd].left % answer.size;
      size_t now = whole ? whole : answer.size;
      ssize_t sent = send(fd, answer.bytes + answer.size - now, now, MSG_NOSIGNAL);
      if (sent < 0) return errno == EAGAIN;
      connections[fd].left -= (size_t)sent;
    }
    if (connections[fd].closes) return 0;
    ssize_t got = recv(fd, piece, sizeof piece, 0);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return 0;
    size_t count = requests(&connections[fd].matched, piece, (size_t)got);
    connections[fd].closes = count > 0 && memmem(piece, (size_t)got, CLOSE, sizeof CLOSE - 1);
    connections[fd].left = count * answers[connections[fd].closes].size;
    /* A short read: nothing more is there, and what comes is told. */
    if (connections[fd].left == 0 && got < (ssize_t)sizeof piece) return 1;
  }
}

static struct answer answer_of(size_t body_bytes, const char *line) {
  struct answer answer = {.bytes = malloc(256 + body_bytes)};
  if (!answer.bytes) fail("memory");
  answer.size = (size_t)sprintf(
      answer.bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%sContent-Length: %zu\r\n\r\n", line, body_bytes);
  memset(answer.bytes + answer.size, 'x', body_bytes);
  answer.size += body_bytes;
  return answer;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) fail("limit of files");
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) fail("limit of files");
  int spins = strcmp(argv[3], "spin") == 0;
  size_t body_bytes = (size_t)atol(argv[2]);
  answers[0] = answer_of(body_bytes, "");
  answers[1] = answer_of(body_bytes, CLOSE "\r\n");
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
        connections[got].closes = 0;
        connections[got].left = 0;
        event.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP;
        event.data.fd = got;
        epoll_ctl(epoll, EPOLL_CTL_ADD, got, &event);
      }
    }
  }
}
