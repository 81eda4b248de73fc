/* A thread in each interruptible system call. No signal but the last comes, so that none of them
 * may say EINTR, nor come back before its time. */
#define _GNU_SOURCE
#include "torture.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20
static const struct timespec a_while = {0, WAIT_MS * 1000000};
static int epoll_fd, sockets[2], queue, semaphores;
static sem_t never_posted;

static struct timespec deadline(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += a_while.tv_nsec;
  if (at.tv_nsec >= 1000000000)
    at.tv_sec++, at.tv_nsec -= 1000000000;
  return at;
}

/* Each gives 0 when the time ran out as it should, else the error. */
static int by_epoll(void) {
  struct epoll_event event;
  return epoll_wait(epoll_fd, &event, 1, WAIT_MS) == 0 ? 0 : errno;
}
static int by_poll(void) {
  struct pollfd fd = {sockets[0], POLLIN, 0};
  return poll(&fd, 1, WAIT_MS) == 0 ? 0 : errno;
}
static int by_select(void) {
  struct timeval time = {0, WAIT_MS * 1000};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(sockets[0], &set);
  return select(sockets[0] + 1, &set, NULL, NULL, &time) == 0 ? 0 : errno;
}
static int by_nanosleep(void) { return nanosleep(&a_while, NULL) ? errno : 0; }
static int by_clock_nanosleep(void) {
  struct timespec at = deadline(CLOCK_MONOTONIC);
  return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}
static int by_recv(void) {
  char byte;
  return recv(sockets[0], &byte, 1, 0) < 0 && errno == EAGAIN ? 0 : errno ? errno : -1;
}
static int by_sigtimedwait(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return sigtimedwait(&set, NULL, &a_while) < 0 && errno == EAGAIN ? 0 : errno;
}
static int by_semaphore(void) {
  struct timespec at = deadline(CLOCK_REALTIME);
  return sem_timedwait(&never_posted, &at) && errno == ETIMEDOUT ? 0 : errno;
}
static int by_semtimedop(void) {
  struct sembuf down = {0, -1, 0};
  return semtimedop(semaphores, &down, 1, &a_while) && errno == EAGAIN ? 0 : errno;
}

static int (*const ways[])(void) = {by_epoll,  by_poll,          by_select,    by_nanosleep,
                                    by_recv,   by_clock_nanosleep, by_sigtimedwait,
                                    by_semaphore, by_semtimedop};
static const char *const names[] = {"epoll_wait", "poll", "select", "nanosleep", "recv",
                                    "clock_nanosleep", "sigtimedwait", "sem_timedwait", "semtimedop"};
#define WAYS (sizeof ways / sizeof *ways)

/* These have no time-out: they may only ever come back with what was sent to them. */
static int pipes[2];
static void *by_read(void *unused) {
  (void)unused;
  char byte = 0;
  return (void *)(long)(read(pipes[0], &byte, 1) == 1 && byte == 'x' ? 0 : errno ? errno : -1);
}
static void *by_msgrcv(void *unused) {
  (void)unused;
  struct { long type; char text[8]; } message;
  return (void *)(long)(msgrcv(queue, &message, 8, 0, 0) == 8 ? 0 : errno ? errno : -1);
}

static long elapsed_us(const struct timespec *from) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - from->tv_sec) * 1000000 + (now.tv_nsec - from->tv_nsec) / 1000;
}

static unsigned long thread_rounds[WAYS];
static void *waits(void *argument) {
  unsigned long way = (unsigned long)argument, wrong = 0;
  while (!stop) {
    struct timespec from;
    clock_gettime(CLOCK_MONOTONIC, &from);
    errno = 0;
    int error = ways[way]();
    long us = elapsed_us(&from);
    /* select and recv count in ticks of the kernel, which may cut the last one short. */
    if (error || us < WAIT_MS * 1000 - 5000) {
      if (wrong++ < 3)
        fprintf(stderr, "%s: %s after %ld us\n", names[way], strerror(error), us);
    }
    wrong += work(way % SEEDS) != expected[way % SEEDS];
    thread_rounds[way]++;
  }
  return (void *)wrong;
}

unsigned long waiting(unsigned long *rounds) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  struct timeval time = {0, WAIT_MS * 1000};
  epoll_fd = epoll_create1(0);
  queue = msgget(IPC_PRIVATE, 0600);
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  if (epoll_fd < 0 || queue < 0 || semaphores < 0 || pipe(pipes) || sem_init(&never_posted, 0, 0) ||
      socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) ||
      setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time)) {
    perror("waiting");
    return 1;
  }
  pthread_t threads[WAYS], reader, receiver;
  for (unsigned long i = 0; i < WAYS; i++)
    if (pthread_create(&threads[i], NULL, waits, (void *)i))
      return 1;
  if (pthread_create(&reader, NULL, by_read, NULL) || pthread_create(&receiver, NULL, by_msgrcv, NULL))
    return 1;

  int signal;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  unsigned long wrong = sigwait(&set, &signal) != 0;
  stop = 1;
  struct { long type; char text[8]; } message = {1, "message"};
  wrong += write(pipes[1], "x", 1) != 1;
  wrong += msgsnd(queue, &message, 8, 0) != 0;
  for (unsigned long i = 0; i < WAYS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (unsigned long)result;
    *rounds += thread_rounds[i];
  }
  void *read_error, *receive_error;
  pthread_join(reader, &read_error);
  pthread_join(receiver, &receive_error);
  msgctl(queue, IPC_RMID, NULL);
  semctl(semaphores, 0, IPC_RMID);
  if (read_error || receive_error)
    fprintf(stderr, "read: error %ld, msgrcv: error %ld\n", (long)read_error, (long)receive_error);
  return wrong + (read_error != NULL) + (receive_error != NULL);
}
