/* uprobe FILE OFFSET PID: a uprobe in one process, as `perf record -e probe:… -p PID` sets it, until stdin ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
  struct perf_event_attr attr = {.size = sizeof attr};
  if (!type || fscanf(type, "%u", &attr.type) != 1)
    return 3;
  attr.uprobe_path = (unsigned long)argv[1];
  attr.probe_offset = strtoull(argv[2], NULL, 10);
  if (syscall(SYS_perf_event_open, &attr, atoi(argv[3]), -1, -1, 0) < 0) {
    printf("%s\n", strerror(errno));
    return 4;
  }
  puts("set");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
