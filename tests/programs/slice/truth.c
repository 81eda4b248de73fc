/* Messages between two network namespaces, and every call that wrote or read their bytes.
 *
 *   truth tcp|udp CLIENT_NETNS SERVER_NETNS ADDRESS PORT ROUNDS BURST SIZE READ WRITER READER
 *         FLOWS DIRECTORY
 *
 * In each of ROUNDS the client writes BURST messages of SIZE bytes, the server reads all of them and
 * writes one. READ: bytes asked for at once. FLOWS connections, a thread each at either end.
 * WRITER: send, write, sendmsg, sendmmsg. READER: recv, read, recvmsg, recvmmsg, peek, epoll.
 * Both ends keep what they know in memory and write it at the end, to DIRECTORY/client and
 * DIRECTORY/server, a call a line:
 *
 *   sent|received client|server CLIENT_PORT AT BYTES BEFORE_NS AFTER_NS TGID TID
 *
 * client|server: who wrote the bytes. AT: of TCP the first byte's place in the stream; of UDP the
 * number that is in the message's first eight bytes. Instants are CLOCK_MONOTONIC around the call.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 65536, FLOWS_MOST = 16 };

struct call {
  uint64_t at, bytes, before, after;
  int tid;
  char what, who;
};
struct flow {
  pthread_t thread;
  int fd, number, port;
  uint64_t written, read, count, room;
  struct call *calls;
};

static int tcp, is_client, port;
static uint64_t rounds, burst, size, chunk;
static const char *writer, *reader;
static struct sockaddr_storage address;
static socklen_t address_len;
static struct flow flows[FLOWS_MOST];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void keep(struct flow *flow, char what, uint64_t at, uint64_t bytes, uint64_t before,
                 uint64_t after) {
  if (flow->count == flow->room) {
    flow->room = flow->room ? flow->room * 2 : 4096;
    flow->calls = realloc(flow->calls, flow->room * sizeof *flow->calls);
    if (!flow->calls)
      fail("memory");
  }
  char who = (what == 's') == is_client ? 'c' : 's';
  flow->calls[flow->count++] =
      (struct call){at, bytes, before, after, gettid(), what, who};
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

static void give(struct flow *flow, char *message) {
  uint64_t done = 0;
  memcpy(message, &flow->written, 8);
  while (done < size) {
    uint64_t before = now_ns();
    ssize_t n = put(flow->fd, message + done, size - done);
    uint64_t after = now_ns();
    if (n <= 0)
      fail(writer);
    keep(flow, 's', flow->written, n, before, after);
    done += n;
    flow->written += tcp ? n : 1;
  }
}

static void take(struct flow *flow, char *message, uint64_t messages) {
  static __thread int epoll = -1;
  uint64_t left = messages * (tcp ? size : 1);
  struct epoll_event event = {.events = EPOLLIN};
  if (!strcmp(reader, "epoll") && epoll < 0) {
    epoll = epoll_create1(0);
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, flow->fd, &event))
      fail("epoll");
  }
  while (left) {
    uint64_t want = !tcp || chunk < left ? chunk : left;
    if (epoll >= 0 && epoll_wait(epoll, &event, 1, -1) < 0)
      fail("epoll_wait");
    if (!strcmp(reader, "peek") && recv(flow->fd, message, want, MSG_PEEK) <= 0)
      fail("peek");
    uint64_t before = now_ns();
    ssize_t n = get(flow->fd, message, want);
    uint64_t after = now_ns(), at = flow->read;
    if (n <= 0)
      fail(reader);
    if (!tcp)
      memcpy(&at, message, 8);
    keep(flow, 'r', at, n, before, after);
    flow->read += n;
    left -= tcp ? n : 1;
  }
}

static void *run(void *argument) {
  struct flow *flow = argument;
  char *message = calloc(1, MOST);
  for (uint64_t round = 0; round < rounds; round++) {
    if (is_client) {
      for (uint64_t i = 0; i < burst; i++)
        give(flow, message);
      take(flow, message, 1);
    } else {
      take(flow, message, burst);
      give(flow, message);
    }
  }
  return NULL;
}

static int local_or_peer(int fd, int is_local) {
  struct sockaddr_in6 a;
  socklen_t len = sizeof a;
  if (is_local ? getsockname(fd, (void *)&a, &len) : getpeername(fd, (void *)&a, &len))
    fail("name");
  return ntohs(a.sin6_port);
}

static void set_port(int number) {
  ((struct sockaddr_in *)&address)->sin_port = htons(number);
}

static int new_socket(void) {
  int one = 1, fd = socket(address.ss_family, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one))
    fail("socket");
  return fd;
}

/* UDP has a port a flow; the client's first byte connects the server's socket to it. */
static void open_flows(int count, int ready, int begin) {
  char byte = 1;
  int listener = -1;
  if (!is_client) {
    for (int i = 0; i < count; i++) {
      set_port(port + (tcp ? 0 : i));
      if (tcp && i)
        break;
      flows[i].fd = listener = new_socket();
      if (bind(listener, (void *)&address, address_len) || (tcp && listen(listener, FLOWS_MOST)))
        fail("bind");
    }
    if (write(ready, &byte, 1) != 1)
      fail("pipe");
  } else if (read(begin, &byte, 1) != 1) {
    fail("the server did not begin");
  }
  for (int i = 0; i < count; i++) {
    struct flow *flow = &flows[i];
    flow->number = i;
    if (is_client) {
      set_port(port + (tcp ? 0 : i));
      flow->fd = new_socket();
      if (connect(flow->fd, (void *)&address, address_len))
        fail("connect");
      if (!tcp && (send(flow->fd, "", 1, 0) != 1 || recv(flow->fd, &byte, 1, 0) != 1))
        fail("hello");
    } else if (tcp) {
      flow->fd = accept(listener, NULL, NULL);
      if (flow->fd < 0)
        fail("accept");
    } else {
      struct sockaddr_storage from;
      socklen_t len = sizeof from;
      if (recvfrom(flow->fd, &byte, 1, 0, (void *)&from, &len) != 1 ||
          connect(flow->fd, (void *)&from, len) || send(flow->fd, "", 1, 0) != 1)
        fail("hello");
    }
    flow->port = local_or_peer(flow->fd, is_client);
  }
}

static int end(const char *netns, const char *directory, int count, int ready, int begin) {
  char path[512];
  int fd = open(netns, O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET))
    fail(netns);
  prctl(PR_SET_NAME, is_client ? "truth-client" : "truth-server");
  open_flows(count, ready, begin);
  for (int i = 0; i < count; i++)
    if (pthread_create(&flows[i].thread, NULL, run, &flows[i]))
      fail("thread");
  for (int i = 0; i < count; i++)
    pthread_join(flows[i].thread, NULL);
  snprintf(path, sizeof path, "%s/%s", directory, is_client ? "client" : "server");
  FILE *out = fopen(path, "w");
  if (!out)
    fail(path);
  for (int i = 0; i < count; i++)
    for (uint64_t n = 0; n < flows[i].count; n++) {
      struct call *c = &flows[i].calls[n];
      fprintf(out, "%s %s %d %lu %lu %lu %lu %d %d\n", c->what == 's' ? "sent" : "received",
              c->who == 'c' ? "client" : "server", flows[i].port, c->at, c->bytes, c->before,
              c->after, getpid(), c->tid);
    }
  return fclose(out) ? 1 : 0;
}

int main(int argc, char **argv) {
  int pipes[2], status, failed = 0;
  if (argc != 14) {
    fputs("truth: see the head of truth.c\n", stderr);
    return 2;
  }
  tcp = !strcmp(argv[1], "tcp");
  port = atoi(argv[5]);
  rounds = atol(argv[6]);
  burst = atol(argv[7]);
  size = atol(argv[8]);
  chunk = atol(argv[9]);
  writer = argv[10];
  reader = argv[11];
  int count = atoi(argv[12]);
  struct sockaddr_in6 *six = (void *)&address;
  struct sockaddr_in *four = (void *)&address;
  if (inet_pton(AF_INET6, argv[4], &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    address_len = sizeof *six;
  } else {
    memset(&address, 0, sizeof address);
    four->sin_family = AF_INET;
    address_len = sizeof *four;
    if (inet_pton(AF_INET, argv[4], &four->sin_addr) != 1)
      fail("address");
  }
  if (size < 8 || size > MOST || chunk < 1 || chunk > MOST || count > FLOWS_MOST || pipe(pipes))
    return 2;
  for (int i = 0; i < 2; i++) {
    pid_t child = fork();
    if (child < 0)
      fail("fork");
    if (!child) {
      is_client = i;
      /* Of a server that fails before, the client reads the pipe's end. */
      close(is_client ? pipes[1] : pipes[0]);
      return end(argv[is_client ? 2 : 3], argv[13], count, pipes[1], pipes[0]);
    }
  }
  close(pipes[0]);
  close(pipes[1]);
  while (wait(&status) > 0)
    failed |= status;
  return failed != 0;
}
