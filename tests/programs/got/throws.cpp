// A third of the calls leaves by an exception.
#include <stdexcept>

unsigned checked(unsigned n) {
    if (n % 3 == 0) throw std::runtime_error("every third");
    return n * 5;
}
