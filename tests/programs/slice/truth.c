/* Messages between two network namespaces, and every call that wrote or read their bytes.
 *
 *   truth tcp|udp CLIENT_NETNS SERVER_NETNS ADDRESS PORT ROUNDS BURST SIZE READ WRITER READER
 *         FLOWS MODE WRITERS READERS DIRECTORY
 *
 * MODE rounds: in each of ROUNDS the client writes BURST messages of SIZE bytes, the server reads all of
 * them and writes one. FLOWS connections, a thread each at either end.
 * MODE stream: ROUNDS times BURST messages one way, on one connection that WRITERS threads write to and
 * READERS read from. With writer-leaves the client is gone before the server begins to read, with
 * reader-leaves the server goes after half of the messages.
 * MODE sockets: ROUNDS connections of TCP, one after the other, of which the server reads each second one.
 * READ: bytes asked for at once. WRITER: send, write, sendmsg, sendmmsg. READER: recv, read, recvmsg,
 * recvmmsg, peek, epoll.
 * Both ends keep what they know in memory and write it at the end, to DIRECTORY/client and
 * DIRECTORY/server, a call a line:
 *
 *   sent|received client|server CLIENT_PORT AT BYTES BEFORE_NS AFTER_NS TGID TID
 *   first client|server CLIENT_PORT SEQUENCE_NUMBER
 *
 * client|server: who wrote the bytes. AT: of TCP the first byte's place in the stream; of UDP the
 * number that is in the message's first eight bytes. Instants are CLOCK_MONOTONIC around the call.
 * SEQUENCE_NUMBER: of TCP's first byte in that direction.
 */
#define _GNU_SOURCE
#include "truth_sockets.h"
#include "truth_stream.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { FLOWS_MOST = 16 };

struct flow {
  pthread_t thread;
  int fd, number, port;
  uint64_t written, read;
  uint32_t first;
  struct calls calls;
};

static int port;
static uint64_t rounds, burst, size, chunk;
static const char *mode;
static struct sockaddr_storage address;
static socklen_t address_len;
static struct flow flows[FLOWS_MOST];
static struct stream stream;

static int is_mode(const char *name) { return !strcmp(mode, name); }

static void give(struct flow *flow, char *message) {
  uint64_t done = 0;
  memcpy(message, &flow->written, 8);
  while (done < size) {
    uint64_t before = now_ns();
    ssize_t n = put(flow->fd, message + done, size - done);
    uint64_t after = now_ns();
    if (n <= 0)
      fail(writer);
    keep(&flow->calls, 's', flow->written, n, before, after);
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
    keep(&flow->calls, 'r', at, n, before, after);
    flow->read += n;
    left -= tcp ? n : 1;
  }
}

static void *run(void *argument) {
  struct flow *flow = argument;
  char *message = calloc(1, MESSAGE_MOST);
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
  if (is_mode("writer-leaves") || is_mode("reader-leaves") || (tcp && is_mode("stream")))
    stream_sockets(fd);
  return fd;
}

/* The number of the first byte that the socket will send; nothing was sent yet. */
static uint32_t first_number(int fd) {
  int on = TCP_REPAIR_ON, queue = TCP_SEND_QUEUE, off = TCP_REPAIR_OFF_NO_WP;
  uint32_t number;
  socklen_t len = sizeof number;
  if (!tcp)
    return 0;
  if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) ||
      setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof queue) ||
      getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &number, &len) ||
      setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof off))
    fail("the first sequence number");
  return number;
}

/* A greeting or its answer may be lost on the way of a stream's messages. */
static void greet(int fd) {
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  char byte;
  do {
    if (send(fd, "", 1, 0) != 1)
      fail("hello");
  } while (!is_mode("rounds") && poll(&wait, 1, AGAIN_MS) == 0);
  if (recv(fd, &byte, 1, 0) != 1)
    fail("hello");
}

/* UDP has a port a flow; the client's first byte connects the server's socket to it. */
static void open_flows(int count, int ready, int begin) {
  char byte = 1;
  int listener = -1;
  set_port(port);
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
  for (int i = 0; i < count && !is_mode("sockets"); i++) {
    struct flow *flow = &flows[i];
    flow->number = i;
    if (is_client) {
      set_port(port + (tcp ? 0 : i));
      flow->fd = new_socket();
      if (connect(flow->fd, (void *)&address, address_len))
        fail("connect");
      if (!tcp)
        greet(flow->fd);
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
    flow->first = first_number(flow->fd);
  }
}

static void rounds_run(int count) {
  for (int i = 0; i < count; i++)
    if (pthread_create(&flows[i].thread, NULL, run, &flows[i]))
      fail("thread");
  for (int i = 0; i < count; i++)
    pthread_join(flows[i].thread, NULL);
}

/* `to`, `from`: the other end. */
static void stream_end_run(int to, int from) {
  char byte = 1;
  stream.fd = flows[0].fd;
  stream.messages = rounds * burst;
  stream.size = size;
  stream.chunk = chunk;
  if (is_mode("reader-leaves"))
    stream.leave_after = stream.messages / 2;
  if (is_mode("writer-leaves") && !tcp)
    stream.leave_after = stream.messages;
  if (!is_client) {
    /* Until the client is gone. */
    if (is_mode("writer-leaves") && read(from, &byte, 1) != 0)
      fail("the client is there");
    stream_run(&stream);
    /* All at once: the client may need fewer than there are readers, and end before the last. */
    char ended[THREADS_MOST] = {0};
    if (is_mode("stream") && write(to, ended, stream.readers) != stream.readers)
      fail("pipe");
    return;
  }
  stream_run(&stream);
  if (is_mode("writer-leaves"))
    return;
  stream_close(&stream, from);
  if (tcp && is_mode("stream") && read(from, &byte, 1) != 1)
    fail("the server did not end");
  stream_places(&stream);
}

static int end(const char *netns, const char *directory, int count, int to, int from) {
  char path[512];
  int fd = open(netns, O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET))
    fail(netns);
  prctl(PR_SET_NAME, is_client ? "truth-client" : "truth-server");
  open_flows(count, to, from);
  if (is_mode("rounds"))
    rounds_run(count);
  else if (is_mode("sockets"))
    sockets_run(flows[0].fd, &address, address_len, rounds, size);
  else
    stream_end_run(to, from);
  snprintf(path, sizeof path, "%s/%s", directory, is_client ? "client" : "server");
  FILE *out = fopen(path, "w");
  if (!out)
    fail(path);
  if (is_mode("sockets"))
    sockets_write(out, rounds);
  for (int i = 0; i < count && !is_mode("sockets"); i++) {
    fprintf(out, "first %s %d %u\n", is_client ? "client" : "server", flows[i].port,
            flows[i].first);
    write_calls(out, &flows[i].calls, flows[i].port);
  }
  for (int i = 0; i < THREADS_MOST; i++)
    write_calls(out, &stream.ends[i].calls, flows[0].port);
  return fclose(out) ? 1 : 0;
}

static int set_address(const char *text) {
  struct sockaddr_in6 *six = (void *)&address;
  struct sockaddr_in *four = (void *)&address;
  if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    address_len = sizeof *six;
    return 1;
  }
  memset(&address, 0, sizeof address);
  four->sin_family = AF_INET;
  address_len = sizeof *four;
  return inet_pton(AF_INET, text, &four->sin_addr) == 1;
}

static int is_meant(int count) {
  if (size < 8 || size > MESSAGE_MOST || chunk < 1 || chunk > MESSAGE_MOST || count > FLOWS_MOST)
    return 0;
  if (is_mode("rounds"))
    return 1;
  if (is_mode("sockets"))
    return tcp && count == 1 && rounds <= CONNECTIONS_MOST;
  /* Of several writers' messages in one stream, only one reader knows the places. */
  return count == 1 && size % 8 == 0 && chunk % 8 == 0 && stream.writers <= THREADS_MOST &&
         stream.readers <= THREADS_MOST && (!tcp || stream.writers == 1 || stream.readers == 1);
}

int main(int argc, char **argv) {
  int to_client[2], to_server[2], status, failed = 0;
  if (argc != 17) {
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
  mode = argv[13];
  stream.writers = atoi(argv[14]);
  stream.readers = atoi(argv[15]);
  if (!set_address(argv[4]) || !is_meant(count) || pipe(to_client) || pipe(to_server)) {
    fputs("truth: not to be had\n", stderr);
    return 2;
  }
  stream.places = mmap(NULL, rounds * burst * 8, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (stream.places == MAP_FAILED)
    fail("memory");
  for (int i = 0; i < 2; i++) {
    pid_t child = fork();
    if (child < 0)
      fail("fork");
    if (!child) {
      is_client = i;
      /* Of an end that goes, the other reads the pipe's end. */
      close(is_client ? to_client[1] : to_client[0]);
      close(is_client ? to_server[0] : to_server[1]);
      return end(argv[is_client ? 2 : 3], argv[16], count,
                 is_client ? to_server[1] : to_client[1], is_client ? to_client[0] : to_server[0]);
    }
  }
  for (int i = 0; i < 2; i++) {
    close(to_client[i]);
    close(to_server[i]);
  }
  while (wait(&status) > 0)
    failed |= status;
  return failed != 0;
}
