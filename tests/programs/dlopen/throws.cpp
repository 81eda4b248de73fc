// An exception passes through functions of its own, and through one of the program's that knows nothing of exceptions.
#include <stdexcept>

extern "C" long through(long (*f)(long), long x);

extern "C" __attribute__((noinline)) long plug_step(long x)
{
    if (x % 3 == 0)
        throw std::runtime_error("three");
    return x * 31 + 7;
}

extern "C" __attribute__((noinline)) long plug_run(long n)
{
    long caught = 0;
    for (long i = 0; i < n; i++) {
        try {
            through(plug_step, i);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    return caught;
}
