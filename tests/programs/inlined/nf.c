/* A network function whose steps are inlined into `packet`: nested, behind branches, with calls, at several places.
 * nf PACKETS: works them off and says what it counted. nf: works until SIGTERM. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INLINED static inline __attribute__((always_inline))

unsigned hash(unsigned x);

struct packet {
  unsigned from, to, ttl, sum;
};

static volatile sig_atomic_t stop;
static unsigned keys[1024], values[1024];
/* Of looked up, rewritten, handled ones. */
static unsigned long counts[3];

INLINED unsigned lookup(unsigned key) {
  unsigned h = hash(key) & 1023;
  counts[0]++;
  for (int i = 0; i < 8; i++) {
    unsigned at = (h + i) & 1023;
    if (keys[at] == key)
      return values[at];
  }
  return 0;
}

INLINED void rewrite(struct packet *p, unsigned with) {
  unsigned sum = 0;
  counts[1]++;
  for (int i = 0; i < 20; i++)
    sum += (with >> (i & 7)) ^ (sum << 3);
  p->sum = p->sum * 31 + sum;
  p->to = with;
}

INLINED int handle(struct packet *p) {
  counts[2]++;
  if (p->ttl == 0)
    return -1;
  p->ttl--;
  rewrite(p, lookup(p->to));
  return 0;
}

__attribute__((noinline)) int packet(struct packet *p) {
  if (handle(p) < 0)
    return 1;
  if (p->from & 1)
    rewrite(p, p->from);
  return p->sum & 2;
}

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

int main(int argc, char **argv) {
  unsigned long packets = argc > 1 ? strtoul(argv[1], NULL, 10) : ~0ul, results = 0;
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, NULL);
  for (unsigned i = 0; i < 1024; i++)
    keys[hash(i) & 1023] = i, values[hash(i) & 1023] = i * 3;
  const char *ready = getenv("READY_FILE");
  if (ready)
    close(open(ready, O_CREAT | O_WRONLY, 0600));
  struct packet p = {0, 0, 0, 1};
  unsigned long n = 0;
  for (; n < packets && !stop; n++) {
    p.from = (unsigned)n, p.to = (unsigned)n & 2047, p.ttl = n % 5;
    results = results * 7 + (unsigned)packet(&p);
  }
  /* What it must come to is known of counts alone: of five, one has no time left. */
  unsigned long handled = n - (n + 4) / 5, odd = 0;
  for (unsigned long i = 0; i < n; i++)
    odd += i % 5 && i & 1;
  int right = counts[2] == n && counts[0] == handled && counts[1] == handled + odd;
  printf("%lu packets, %lu looked up, %lu rewritten, %s", n, counts[0], counts[1], right ? "right" : "wrong");
  if (argc > 1)
    printf(", %08x %lx", p.sum, results);
  puts("");
  return !right;
}
