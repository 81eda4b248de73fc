// Calls `work` for lines on stdin: "fast" a thousand times, "slow" once, for 50 ms or more, "always" until it is killed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((noipa)) unsigned long work(unsigned long n, long wait_ns) {
    if (wait_ns) {
        struct timespec time = {0, wait_ns};
        nanosleep(&time, NULL);
    }
    return 3 * n + 1;
}

int main(void) {
    const char *ready = getenv("READY_FILE");
    if (ready) fclose(fopen(ready, "w"));
    char line[64];
    unsigned long sum = 0;
    while (fgets(line, sizeof line, stdin)) {
        if (strncmp(line, "slow", 4) == 0) sum += work(sum, 50000000);
        else if (strncmp(line, "always", 6) == 0)
            for (;;) sum += work(sum, 0);
        else
            for (int k = 0; k < 1000; k++) sum += work(sum, 0);
        printf("%lu\n", sum);
        fflush(stdout);
    }
    return 0;
}
