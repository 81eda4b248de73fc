/* Connections one after the other; the server reads every other one's message and closes the rest with the
 * message unread. The kernel gives a socket's memory to the next. */
#pragma once
#include "truth_calls.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

enum { CLIENT_PORTS = 33000, CONNECTIONS_MOST = 8000 };

struct connection {
  struct calls calls;
  uint32_t first;
};
static struct connection connections[CONNECTIONS_MOST];

static uint32_t first_number(int fd);

static int sockets_connect(const struct sockaddr_storage *to, socklen_t len, int number) {
  struct sockaddr_in6 from = {.sin6_family = to->ss_family,
                              .sin6_port = htons(CLIENT_PORTS + number)};
  int fd = socket(to->ss_family, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (void *)&from, len) || connect(fd, (void *)to, len))
    fail("connect");
  return fd;
}

static void sockets_run(int listener, const struct sockaddr_storage *address, socklen_t len,
                        uint64_t count, uint64_t size) {
  char *message = calloc(1, size);
  for (uint64_t i = 0; i < count; i++) {
    struct connection *c = &connections[i];
    int fd = is_client ? sockets_connect(address, len, i) : accept(listener, NULL, NULL);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (fd < 0)
      fail("accept");
    c->first = first_number(fd);
    if (!is_client && i % 2 == 0) {
      if (poll(&wait, 1, -1) != 1)
        fail("poll");
    } else {
      uint64_t before = now_ns();
      ssize_t n = is_client ? put(fd, message, size) : recv(fd, message, size, MSG_WAITALL);
      uint64_t after = now_ns();
      if (n != (ssize_t)size)
        fail("a message");
      keep(&c->calls, is_client ? 's' : 'r', 0, n, before, after);
    }
    /* The server is done with it. */
    if (is_client && recv(fd, message, 1, 0) > 0)
      fail("an answer");
    close(fd);
  }
  free(message);
}

static void sockets_write(FILE *out, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    fprintf(out, "first %s %lu %u\n", is_client ? "client" : "server", CLIENT_PORTS + i,
            connections[i].first);
    write_calls(out, &connections[i].calls, CLIENT_PORTS + i);
  }
}
