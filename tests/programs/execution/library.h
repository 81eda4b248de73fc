// What every group of library.c is given.
#include <stdint.h>

struct input {
    uint64_t random, length;
    double real;
    unsigned char bytes[4096];
    char text[4096 + 1];
};

uint64_t digests(struct input *), ciphers(struct input *), big_numbers(struct input *);
