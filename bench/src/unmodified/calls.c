/* What a call costs on a descriptor that is none of the stack's: a byte to /dev/null.
 *
 *   calls BATCHES    prints the least time of a batch, in nanoseconds a call
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CALLS 20000

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int fd = open("/dev/null", O_WRONLY);
  double least = 1e12;
  for (long batch = atol(argv[1]); batch > 0; batch--) {
    double start = now_ns();
    for (int n = 0; n < CALLS; n++)
      if (write(fd, "x", 1) != 1) return 1;
    double each = (now_ns() - start) / CALLS;
    if (each < least) least = each;
  }
  printf("%.3f\n", least);
  return 0;
}
