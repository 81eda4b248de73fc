// While it is recorded it sets every counter in its rings to the largest number.
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noipa)) unsigned ones_work(unsigned n) {
    return n * 3 + 1;
}

static int overwrite(void) {
    char line[512], mode[8];
    unsigned long begin, end;
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "hopscope-rings") && sscanf(line, "%lx-%lx %7s", &begin, &end, mode) == 3 && mode[1] == 'w') {
            for (uint64_t *word = (uint64_t *)begin; word < (uint64_t *)begin + 32; word++) *word = UINT64_MAX;
            found = 1;
        }
    if (maps) fclose(maps);
    return found;
}

int main(void) {
    const char *name = getenv("READY_FILE");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file) fclose(file);
    unsigned sum = 0;
    while (!overwrite()) sched_yield();
    for (;;) {
        sum += ones_work(sum);
        overwrite();
        sched_yield();
    }
}
