// A process of 64 MiB whose text and data are not touched while it waits for its input.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (64ul << 20)

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

int main(void) {
    char *memory = aligned_alloc(4096, BYTES);
    if (!memory) return 3;
    memset(memory, 1, BYTES);
    printf("%p\n", (void *)memory);
    fflush(stdout);
    // Each byte of input writes to the third page.
    for (unsigned long n = 0; getchar() != EOF; n++) {
        memory[2 * 4096] = (char)n;
        printf("%d\n", one_step(n) == 3 * n + 1);
        fflush(stdout);
    }
    return 0;
}
