// Calls what the C library chooses when the program runs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    unsigned long sum = 0;
    int n = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < n; i++) sum += strlen(argv[0] + i % 3);
    printf("%lu\n", sum);
    return 0;
}
