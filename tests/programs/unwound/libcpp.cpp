// Exceptions of the C++ library and runtime of LLVM, through functions that clean up, catch and rethrow; each round gives the same.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#define KEPT __attribute__((noinline, used))

static long cleaned;
struct Guard {
	~Guard() { cleaned++; }
};

KEPT long throws(long n)
{
	if (n % 3 == 1)
		throw std::runtime_error(std::to_string(n));
	if (n % 3 == 2)
		throw n;
	return n;
}
KEPT long cleans(long n, long depth)
{
	Guard guard;
	return depth ? cleans(n, depth - 1) + 1 : throws(n);
}
KEPT long rethrows(long n)
{
	try {
		return cleans(n, n % 7);
	} catch (long &thrown) {
		thrown += 5;
		throw;
	}
}
KEPT long nests(long n)
{
	try {
		return rethrows(n);
	} catch (std::runtime_error &error) {
		try {
			return rethrows(n + 1) + std::stol(error.what());
		} catch (long thrown) {
			return thrown * 2;
		}
	}
}
KEPT long across(long n)
{
	auto later = std::async(std::launch::async, [n] { return nests(n) + std::vector<long>(3).at(n % 4); });
	try {
		return later.get();
	} catch (std::out_of_range &) {
		return 7;
	} catch (...) {
		return 11;
	}
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 10, sum = 0;
	for (long n = 0; n < rounds * 12; n++)
		sum += across(n);
	printf("%ld %ld\n", sum, cleaned);
}
