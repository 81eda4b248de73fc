/* The other end of ask.c, as little as it takes: one thread, epoll, every byte back as it came.
 *
 *   answer PATH     listens on an AF_UNIX socket there, answers `ready`
 *   answer tcp      listens on a TCP port of the loopback device, answers `ready PORT`
 *   Ends with its stdin.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CHUNK (128 << 10)

struct connection {
  int fd;
  /* Read and not sent yet. */
  char *rest;
  size_t from, to;
};

static int epoll;

static void fail(const char *what) {
  perror(what);
  exit(2);
}

static void watch(struct connection *c, int how, uint32_t what) {
  struct epoll_event event = {.events = what, .data.ptr = c};
  if (epoll_ctl(epoll, how, c->fd, &event) != 0) fail("epoll_ctl");
}

static void end(struct connection *c) {
  close(c->fd);
  free(c->rest);
  free(c);
}

/* Whether nothing is left; -1: the connection is gone. */
static int push(struct connection *c) {
  while (c->from < c->to) {
    ssize_t n = send(c->fd, c->rest + c->from, c->to - c->from, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return 0;
    if (n <= 0) return -1;
    c->from += (size_t)n;
  }
  return 1;
}

/* No more is read until what was read has gone: TCP's window holds the client back. */
static void turn(struct connection *c) {
  int was_full = c->from < c->to;
  int is_empty = push(c);
  if (is_empty == 1) {
    ssize_t n = recv(c->fd, c->rest, CHUNK, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
      end(c);
      return;
    }
    c->from = 0;
    c->to = n > 0 ? (size_t)n : 0;
    is_empty = push(c);
  }
  if (is_empty < 0) {
    end(c);
    return;
  }
  int is_full = !is_empty;
  if (is_full != was_full) watch(c, EPOLL_CTL_MOD, is_full ? EPOLLOUT : EPOLLIN);
}

static void enter(int listener, int is_tcp) {
  int on = 1, fd = accept(listener, NULL, NULL);
  if (fd < 0) return;
  if (is_tcp) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct connection *c = calloc(1, sizeof *c);
  if (c == NULL || (c->rest = malloc(CHUNK)) == NULL) fail("memory");
  c->fd = fd;
  watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static int listen_at(const char *where, int is_tcp) {
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_un un = {.sun_family = AF_UNIX};
  struct sockaddr *at = is_tcp ? (struct sockaddr *)&in : (struct sockaddr *)&un;
  socklen_t size = is_tcp ? sizeof in : sizeof un;
  snprintf(un.sun_path, sizeof un.sun_path, "%s", where);
  int listener = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (listener < 0 || bind(listener, at, size) != 0 || listen(listener, 4096) != 0) fail(where);
  if (is_tcp && getsockname(listener, at, &size) != 0) fail("getsockname");
  printf(is_tcp ? "ready %u\n" : "ready\n", ntohs(in.sin_port));
  fflush(stdout);
  return listener;
}

int main(int count, char **arguments) {
  static struct epoll_event events[1024];
  struct connection listener = {.fd = -1}, input = {.fd = STDIN_FILENO};
  struct rlimit limit;
  char byte;
  if (count != 2) {
    fprintf(stderr, "usage: answer PATH|tcp\n");
    return 2;
  }
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  int is_tcp = strcmp(arguments[1], "tcp") == 0;
  if ((epoll = epoll_create1(0)) < 0) fail("epoll");
  listener.fd = listen_at(arguments[1], is_tcp);
  watch(&listener, EPOLL_CTL_ADD, EPOLLIN);
  watch(&input, EPOLL_CTL_ADD, EPOLLIN);
  for (;;) {
    int ready = epoll_wait(epoll, events, 1024, -1);
    for (int i = 0; i < ready; i++) {
      struct connection *c = events[i].data.ptr;
      if (c == &listener)
        enter(listener.fd, is_tcp);
      else if (c != &input)
        turn(c);
      else if (read(STDIN_FILENO, &byte, 1) <= 0)
        return 0;
    }
  }
}
