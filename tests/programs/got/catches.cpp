#include <cstdio>
#include <cstdlib>
#include <stdexcept>

unsigned checked(unsigned n);

int main(int, char **argv) {
    unsigned long sum = 0, caught = 0;
    for (unsigned n = 0; n < (unsigned)atoi(argv[1]); n++) {
        try {
            sum += checked(n);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    printf("%lu %lu\n", sum, caught);
    return 0;
}
