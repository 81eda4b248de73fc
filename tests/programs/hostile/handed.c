/* A process of root's that another user has handed a memfd called as hopscope's are. It reads it, as
 * a server reads what its clients hand it. The table in there says that the jump in `victim` was put
 * there by hopscope, and what to write in its place.
 *
 * For each line on stdin it says what `victim` gives: 1.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STRANGER 65534
#define SIZE 8192

/* At `site` a jump to what follows it, as wide as hopscope's. In its place would come: mov eax, 2 */
__asm__(".globl victim\n.globl site\nvictim: mov $1, %eax\nsite: .byte 0xe9\n.long 0\nret\n");
int victim(void);
extern const unsigned char site[];
__asm__(".globl changed\nchanged: mov $2, %eax\nret\n");
extern const unsigned char changed[];

static const char TABLE[] =
    "{\"target\":%d,\"recorder\":4194303,\"recorder_started\":1,"
    "\"segments\":[{\"at\":%lu,\"len\":8192}],"
    "\"header\":{\"at\":%lu,\"len\":8192},\"contexts\":{\"at\":0,\"len\":0},"
    "\"pool\":{\"at\":0,\"len\":0},\"pool_contexts\":0,\"ring_records_log2\":4,"
    "\"patches\":[{\"at\":%lu,\"original\":[%d,%d,%d,%d,%d],\"replaced\":[%d,%d,%d,%d,%d]}],"
    "\"meta\":{\"hopscope_version\":\"\",\"command_line\":[],\"host\":\"\",\"kernel\":\"\","
    "\"cpu\":\"\",\"cpus_online\":1,\"tsc_frequency\":1,\"tsc_invariant\":true,"
    "\"start\":{\"tsc\":0,\"monotonic_ns\":0,\"realtime_ns\":0,\"window_ticks\":0},"
    "\"stride\":16,\"ring_records\":16,\"probe_cost\":null},"
    "\"process\":{\"ix\":0,\"pid\":1,\"comm\":\"\",\"command_line\":[]},"
    "\"modules\":[],\"functions\":[]}";

int main(void) {
  /* Made by the other user. */
  if (seteuid(STRANGER))
    return 2;
  int fd = memfd_create("hopscope-code", MFD_CLOEXEC);
  if (seteuid(0) || fd < 0 || ftruncate(fd, SIZE))
    return 3;
  unsigned char *arena = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  unsigned char *read = mmap(0, SIZE, PROT_READ, MAP_SHARED, fd, 0);
  if (arena == MAP_FAILED || read == MAP_FAILED)
    return 4;
  unsigned long at = (unsigned long)site;
  const unsigned char *was = changed, *is = site;
  int len = snprintf((char *)arena + 64, SIZE - 64, TABLE, getpid(), at & ~4095ul,
                     (unsigned long)read, at, was[0], was[1], was[2], was[3], was[4], is[0], is[1],
                     is[2], is[3], is[4]);
  uint32_t version = 4, patched = 2;
  uint64_t json = len;
  memcpy(arena, "hopsARNA", 8);
  memcpy(arena + 8, &version, 4);
  memcpy(arena + 12, &patched, 4);
  memcpy(arena + 16, &json, 8);
  munmap(arena, SIZE);
  close(fd);
  if (fclose(fopen(getenv("READY_FILE"), "w")))
    return 5;
  char line[16];
  while (fgets(line, sizeof line, stdin)) {
    printf("%d\n", victim());
    fflush(stdout);
  }
  return 0;
}
