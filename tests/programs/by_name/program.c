// ROUNDS of calls of what is too short, of which some are jumps or through pointers, and of a library's function.
#include <stdio.h>
#include <stdlib.h>

int one(int);
int two(int);
int looped(int);
int odd(int);
int within(int);
int three(int);
int entered(int);
int away(int);

__attribute__((noinline)) static int twice(int n) {
    int sum = 0;
    for (int i = 0; i < 2; i++) sum += one(n + i) + two(sum);
    return sum + looped(4);
}

// gcc and clang make a jump of it from -O2 on.
__attribute__((noinline)) int ends_in(int n) {
    return one(n + 1);
}

__attribute__((noinline)) static int thrice(int n) {
    int sum = 0;
    for (int i = 0; i < 3; i++) sum += three(n + i);
    return sum;
}

static int (*volatile pointer)(int) = two;
static int (*volatile of_library)(int) = away;

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    unsigned long sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += twice(i) + ends_in(i) + pointer(i) + two(i);
        sum += odd(i) + odd(i + 1) + within(5);
        sum += thrice(i) + entered(4) + away(i) + of_library(i);
    }
    printf("%lu\n", sum);
    return 0;
}
