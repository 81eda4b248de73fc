// The C++ library's helpers for arrays raise for their callers (Itanium C++ ABI 3.3.3).
#include <cstdio>
#include <new>

namespace __cxxabiv1 {
extern "C" void *__cxa_vec_new(std::size_t count, std::size_t size, std::size_t padding, void (*make)(void *), void (*end)(void *));
}

__attribute__((noinline)) static void *makes(std::size_t count)
{
	return __cxxabiv1::__cxa_vec_new(count, 8, 8, nullptr, nullptr);
}

int main(int argc, char **)
{
	try {
		return makes(std::size_t(-1) / (argc + 1)) != nullptr;
	} catch (const std::bad_alloc &) {
		std::printf("too long\n");
	}
	return 0;
}
