/* The calls that a thread made, kept in memory and written at the end, and how it makes them. */
#pragma once
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct call {
  uint64_t at, bytes, before, after;
  int tid;
  char what, who;
};
struct calls {
  uint64_t count, room;
  struct call *all;
};

static int tcp, is_client;
static const char *writer, *reader;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void keep(struct calls *calls, char what, uint64_t at, uint64_t bytes, uint64_t before,
                 uint64_t after) {
  if (calls->count == calls->room) {
    calls->room = calls->room ? calls->room * 2 : 4096;
    calls->all = realloc(calls->all, calls->room * sizeof *calls->all);
    if (!calls->all)
      fail("memory");
  }
  char who = (what == 's') == is_client ? 'c' : 's';
  calls->all[calls->count++] = (struct call){at, bytes, before, after, gettid(), what, who};
}

static void write_calls(FILE *out, const struct calls *calls, int client_port) {
  for (uint64_t n = 0; n < calls->count; n++) {
    struct call *c = &calls->all[n];
    fprintf(out, "%s %s %d %lu %lu %lu %lu %d %d\n", c->what == 's' ? "sent" : "received",
            c->who == 'c' ? "client" : "server", client_port, c->at, c->bytes, c->before, c->after,
            getpid(), c->tid);
  }
}

static ssize_t put(int fd, char *from, size_t bytes) {
  struct iovec iov = {from, bytes};
  struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};
  if (!strcmp(writer, "write"))
    return write(fd, from, bytes);
  if (!strcmp(writer, "sendmsg"))
    return sendmsg(fd, &m.msg_hdr, MSG_NOSIGNAL);
  if (!strcmp(writer, "sendmmsg"))
    return sendmmsg(fd, &m, 1, MSG_NOSIGNAL) == 1 ? (ssize_t)m.msg_len : -1;
  return send(fd, from, bytes, MSG_NOSIGNAL);
}

static ssize_t get(int fd, char *to, size_t bytes) {
  struct iovec iov = {to, bytes};
  struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};
  if (!strcmp(reader, "read"))
    return read(fd, to, bytes);
  if (!strcmp(reader, "recvmsg"))
    return recvmsg(fd, &m.msg_hdr, 0);
  if (!strcmp(reader, "recvmmsg"))
    return recvmmsg(fd, &m, 1, 0, NULL) == 1 ? (ssize_t)m.msg_len : -1;
  return recv(fd, to, bytes, 0);
}
