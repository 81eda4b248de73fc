// Stages that are called right behind each other: once for each byte on stdin.
#include <stdio.h>
#include <unistd.h>

__attribute__((noipa)) unsigned long first(unsigned long n) { return n + 1; }
__attribute__((noipa)) unsigned long second(unsigned long n) { return 3 * n; }
__attribute__((noipa)) unsigned long third(unsigned long n) { return n ^ 5; }

__attribute__((noipa)) unsigned long stages(unsigned long n) {
    n = first(n);
    n = second(n);
    return third(n) + 1;
}

int main(void) {
    char byte;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    unsigned long n = 1;
    while (read(0, &byte, 1) == 1) {
        n = stages(n);
        puts("again");
    }
    return n == 0;
}
