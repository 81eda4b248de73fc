/* Threads that end early, and processes that are made. */
#include "awkward.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int cleaned;
static void cleanup(void *unused) {
  (void)unused;
  cleaned++;
}

SEALED void exits_thread(long value) {
  pthread_exit((void *)value);
}
static void *exiting(void *value) {
  pthread_cleanup_push(cleanup, NULL);
  exits_thread((long)value);
  pthread_cleanup_pop(0);
  return NULL;
}
static int check_pthread_exit(void) {
  pthread_t thread;
  void *result = NULL;
  int before = cleaned;
  if (pthread_create(&thread, NULL, exiting, (void *)77) || pthread_join(thread, &result))
    return 0;
  return result == (void *)77 && cleaned == before + 1;
}

SEALED long waits_for_ever(int fd) {
  char byte;
  return read(fd, &byte, 1);
}
static void *cancelled(void *fd) {
  pthread_cleanup_push(cleanup, NULL);
  waits_for_ever(*(int *)fd);
  pthread_cleanup_pop(0);
  return NULL;
}
static int check_pthread_cancel(void) {
  pthread_t thread;
  void *result = NULL;
  int ends[2], before = cleaned;
  if (pipe(ends) || pthread_create(&thread, NULL, cancelled, &ends[0]))
    return 0;
  pthread_cancel(thread);
  pthread_join(thread, &result);
  close(ends[0]);
  close(ends[1]);
  /* Cancelled before it pushed its clean-up, or after: both are right. */
  return result == PTHREAD_CANCELED && cleaned - before <= 1;
}

SEALED int in_child(int x) { return (x * 5 + 3) & 0x7f; }

SEALED int forks(int x) {
  pid_t pid = fork();
  if (pid == 0)
    _exit(in_child(in_child(x)));
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
    return -1;
  return WEXITSTATUS(status);
}
static int check_fork(void) { return forks(9) == ((((9 * 5 + 3) & 0x7f) * 5 + 3) & 0x7f); }

SEALED int vforks_and_execs(void) {
  pid_t pid = vfork();
  if (pid == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static int check_vfork(void) { return vforks_and_execs() == 0; }

const struct check process_checks[] = {
    {"pthread_exit", check_pthread_exit, {{"exits_thread", 1}}},
    {"pthread_cancel", check_pthread_cancel, {{0}}},
    {"fork", check_fork, {{"forks", 1}}},
    {"vfork", check_vfork, {{0}}},
    {0},
};
