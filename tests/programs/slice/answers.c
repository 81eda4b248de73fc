/* A server with a thread a connection. Each line is a number; handler_<number % 5> is called for it, and it
 * is answered by the same line. Lines may come in pieces, and several at once. The port is written to
 * READY_FILE. Ends when all connections have ended: answers CONNECTIONS */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
  int fd;
  unsigned have;
  char line[64];
};

static volatile unsigned worked;

#define HANDLER(k)                                             \
  __attribute__((noinline)) unsigned handler_##k(unsigned n) { \
    for (unsigned i = 0; i < 50 * (k + 1); i++)                \
      worked += n;                                             \
    return n % 5 == k;                                         \
  }

HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)

__attribute__((noinline)) void answer(struct connection *c) {
  if (send(c->fd, c->line, c->have, MSG_NOSIGNAL) != (ssize_t)c->have)
    exit(3);
}

static void line(struct connection *c) {
  unsigned n = atoi(c->line);
  unsigned right = n % 5 == 0   ? handler_0(n)
                   : n % 5 == 1 ? handler_1(n)
                   : n % 5 == 2 ? handler_2(n)
                   : n % 5 == 3 ? handler_3(n)
                                : handler_4(n);
  if (!right)
    exit(4);
  answer(c);
  c->have = 0;
}

__attribute__((noinline)) void take(struct connection *c, const char *bytes, ssize_t len) {
  for (ssize_t i = 0; i < len; i++) {
    if (c->have == sizeof c->line)
      exit(5);
    c->line[c->have++] = bytes[i];
    if (bytes[i] == '\n')
      line(c);
  }
}

static void *serve(void *of) {
  struct connection c = {.fd = (int)(long)of};
  char room[256];
  ssize_t len;

  while ((len = recv(c.fd, room, sizeof room, 0)) > 0)
    take(&c, room, len);
  close(c.fd);
  return NULL;
}

int main(int argc, char **argv) {
  int connections = argc > 1 ? atoi(argv[1]) : 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  pthread_t threads[64];
  int on = 1;
  char aside[4096];
  FILE *ready;

  if (connections > 64 || bind(listener, (void *)&address, len) || listen(listener, 64) ||
      getsockname(listener, (void *)&address, &len)) {
    perror("listening");
    return 2;
  }
  snprintf(aside, sizeof aside, "%s.aside", getenv("READY_FILE"));
  ready = fopen(aside, "w");
  fprintf(ready, "%d\n", ntohs(address.sin_port));
  fclose(ready);
  rename(aside, getenv("READY_FILE"));
  for (int i = 0; i < connections; i++) {
    long fd = accept(listener, NULL, NULL);
    /* A packet an answer. */
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
      return 2;
    pthread_create(&threads[i], NULL, serve, (void *)fd);
  }
  for (int i = 0; i < connections; i++)
    pthread_join(threads[i], NULL);
  return 0;
}
