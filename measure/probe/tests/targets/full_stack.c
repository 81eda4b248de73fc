/* Waits with its stack in use down to the last bytes of its mapping, as deep recursion does now and then. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uintptr_t lowest;

static void find_lowest(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "[stack]")) {
      lowest = strtoul(line, NULL, 16);
      fclose(maps);
      return;
    }
  exit(2);
}

__attribute__((noinline)) uint64_t measured_function(uint64_t x) {
  __asm__ volatile("" : "+r"(x));
  return x * 3;
}

/* Returns how many frames it took, so that none is a loop's. */
__attribute__((noinline)) static uint64_t go_down(uint64_t depth) {
  volatile char frame[512];
  memset((char *)frame, (int)depth, sizeof frame);
  uint64_t frames = 1;
  if ((uintptr_t)frame - lowest > 2048) {
    frames += go_down(depth + 1);
  } else {
    char told;
    if (write(1, "deep\n", 5) != 5 || read(0, &told, 1) != 1)
      exit(2);
    if (measured_function(depth) != depth * 3)
      exit(3);
  }
  for (size_t i = 0; i < sizeof frame; i++)
    if (frame[i] != (char)depth)
      exit(4);
  return frames;
}

int main(void) {
  find_lowest();
  uint64_t frames = go_down(0);
  puts(frames > 100 ? "OK" : "too few frames");
  return 0;
}
