/* Messages one way, by several threads on one socket at either end.
 *
 * Each eight bytes of a message hold a number that tells whoever reads them where they are: with one
 * writer their place in the stream, with several the message's number; of UDP the message's number.
 * TCP's messages of several writers lie whole in the stream, since the socket has room for all of
 * them; the reader, which is one then, notes where each lies in memory that both ends share. */
#pragma once
#include "truth_calls.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS_MOST = 8, MESSAGE_MOST = 65536, AGAIN_MS = 20, ROOM = 256 << 20 };
/* One byte: the end of UDP's messages. */
#define LAST "E"

struct stream_end {
  pthread_t thread;
  struct stream *stream;
  int number;
  struct calls calls;
};
struct stream {
  int fd, writers, readers;
  uint64_t messages, size, chunk;
  /* How many messages the readers take before they go; 0: all. */
  uint64_t leave_after;
  /* Place of each message. */
  uint64_t *places;
  _Atomic uint64_t next, taken;
  struct stream_end ends[THREADS_MOST];
};

static void stream_sockets(int fd) {
  int room = ROOM;
  if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) ||
      setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
    fail("room for all messages");
}

static int is_gone(void) {
  return errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED;
}

static void *stream_writer(void *argument) {
  struct stream_end *end = argument;
  struct stream *s = end->stream;
  uint64_t *message = calloc(1, MESSAGE_MOST);
  for (;;) {
    uint64_t number = s->next++;
    if (number >= s->messages)
      break;
    uint64_t at = tcp && s->writers == 1 ? number * s->size : number;
    for (uint64_t i = 0; i < s->size / 8; i++)
      message[i] = tcp && s->writers == 1 ? at + i * 8 : at;
    uint64_t before = now_ns();
    ssize_t n = put(s->fd, (char *)message, s->size);
    uint64_t after = now_ns();
    if (n < 0 && is_gone()) {
      s->next = s->messages;
      break;
    }
    if (n != (ssize_t)s->size)
      fail("a message was not written whole");
    keep(&end->calls, 's', at, n, before, after);
  }
  free(message);
  return NULL;
}

/* Where TCP's bytes lie; of several writers, their messages are told apart. */
static uint64_t stream_place(struct stream *s, const uint64_t *bytes, ssize_t n) {
  uint64_t at = s->taken;
  if (s->writers == 1)
    return bytes[0];
  for (ssize_t i = 0; i < n / 8; i++) {
    uint64_t place = at + i * 8;
    if (place % s->size == 0)
      s->places[bytes[i]] = place;
    else if (s->places[bytes[i]] != place - place % s->size) {
      fputs("messages of two writers are mixed\n", stderr);
      exit(1);
    }
  }
  return at;
}

static void *stream_reader(void *argument) {
  struct stream_end *end = argument;
  struct stream *s = end->stream;
  uint64_t *bytes = calloc(1, MESSAGE_MOST);
  while (!s->leave_after || s->taken < s->leave_after * (tcp ? s->size : 1)) {
    uint64_t before = now_ns();
    ssize_t n = get(s->fd, (char *)bytes, tcp ? s->chunk : MESSAGE_MOST);
    uint64_t after = now_ns();
    if (n == 0 || (n < 0 && is_gone()))
      break;
    if (n < 0)
      fail(reader);
    if (!tcp && n == 1 && !memcmp(bytes, LAST, 1))
      break;
    if (!tcp && n == 1) {
      /* A client that did not see our answer. */
      if (send(s->fd, "", 1, 0) != 1)
        fail("hello");
      continue;
    }
    if (n % 8) {
      fputs("part of a number was read\n", stderr);
      exit(1);
    }
    keep(&end->calls, 'r', tcp ? stream_place(s, bytes, n) : bytes[0], n, before, after);
    s->taken += tcp ? n : 1;
  }
  free(bytes);
  return NULL;
}

/* `told`: the other end's word that it has seen the end, a byte a reader. */
static void stream_close(struct stream *s, int told) {
  struct pollfd wait = {.fd = told, .events = POLLIN};
  char byte;
  if (tcp) {
    if (shutdown(s->fd, SHUT_WR) && errno != ENOTCONN)
      fail("shutdown");
    return;
  }
  for (int seen = 0; seen < s->readers;) {
    if (send(s->fd, LAST, 1, 0) != 1 && !is_gone())
      fail("the end");
    if (poll(&wait, 1, AGAIN_MS) > 0) {
      /* An end without a byte: the readers are gone. */
      if (read(told, &byte, 1) != 1)
        return;
      seen++;
    }
  }
}

/* With several writers on a stream, a message's place is known once it was read. */
static void stream_places(struct stream *s) {
  for (int i = 0; tcp && s->writers > 1 && i < s->writers; i++)
    for (uint64_t n = 0; n < s->ends[i].calls.count; n++)
      s->ends[i].calls.all[n].at = s->places[s->ends[i].calls.all[n].at];
}

static void stream_run(struct stream *s) {
  int threads = is_client ? s->writers : s->readers;
  for (int i = 0; i < threads; i++) {
    s->ends[i] = (struct stream_end){.stream = s, .number = i};
    if (pthread_create(&s->ends[i].thread, NULL, is_client ? stream_writer : stream_reader,
                       &s->ends[i]))
      fail("thread");
  }
  for (int i = 0; i < threads; i++)
    pthread_join(s->ends[i].thread, NULL);
}
