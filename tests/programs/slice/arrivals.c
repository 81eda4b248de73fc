/* Data that are looked at before they are read, or that come out of order, on the loopback device. Prints
 * CLOCK_MONOTONIC, in ns, before the call that reads: arrivals peek|gap PORT */
#include <arpa/inet.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int sender, reader;

static void check(int failed, const char *what) {
  if (failed) {
    perror(what);
    exit(1);
  }
}

static void connect_both(int port) {
  int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  check(bind(listener, (void *)&address, sizeof address), "bind");
  check(listen(listener, 1), "listen");
  sender = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(sender, (void *)&address, sizeof address), "connect");
  reader = accept(listener, 0, 0);
  check(reader < 0, "accept");
  setsockopt(sender, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static void say_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
}

static void peek(char *room) {
  check(send(sender, room, 64, 0) != 64, "send");
  check(recv(reader, room, 64, MSG_PEEK) != 64, "peek");
  say_now();
  check(recv(reader, room, 64, 0) != 64, "recv");
}

/* The receiving socket refuses the first segment, by its length, until the second is there. */
static void gap(char *room) {
  struct sock_filter of_length[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 20 + 100, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 32 + 100, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  struct sock_fprog program = {sizeof of_length / sizeof *of_length, of_length};
  check(setsockopt(reader, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), "filter");
  check(send(sender, room, 100, 0) != 100, "send");
  check(send(sender, room, 200, 0) != 200, "send");
  check(setsockopt(reader, SOL_SOCKET, SO_DETACH_FILTER, &program, sizeof program), "no filter");
  say_now();
  check(recv(reader, room, 300, MSG_WAITALL) != 300, "recv");
}

int main(int count, char **words) {
  static char room[300];
  check(count != 3, "arguments");
  connect_both(atoi(words[2]));
  strcmp(words[1], "peek") ? gap(room) : peek(room);
  return 0;
}
