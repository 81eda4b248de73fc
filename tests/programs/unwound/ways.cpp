// Every way in which a frame is unwound, round after round; each round must give the same sum. Without a number of
// rounds it goes on until SIGTERM.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <execinfo.h>
#include <fcntl.h>
#include <future>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define KEPT __attribute__((noinline, noclone, used))

static volatile sig_atomic_t stop;
static std::atomic<long> cleaned;

struct Guard {
	~Guard() { cleaned++; }
};
struct Thrower {
	long n;
	Thrower(long n) : n(n)
	{
		if (n % 3 == 0)
			throw n;
	}
	~Thrower() noexcept(false)
	{
		if (n % 5 == 1 && !std::uncaught_exceptions())
			throw std::string("dtor");
	}
};

KEPT long constructs(long n)
{
	Thrower thrower(n);
	asm volatile("" ::: "memory");
	return thrower.n;
}
KEPT long nests(long n)
{
	Guard guard;
	try {
		try {
			return constructs(n);
		} catch (long) {
			throw std::runtime_error("nested");
		}
	} catch (std::runtime_error &) {
		std::throw_with_nested(std::logic_error("outer"));
	}
}
KEPT long unwraps(long n)
{
	try {
		return nests(n);
	} catch (std::logic_error &outer) {
		try {
			std::rethrow_if_nested(outer);
		} catch (std::runtime_error &) {
			return 7;
		}
		return -1;
	} catch (std::string &text) {
		return (long)text.size();
	}
}
KEPT std::exception_ptr captures(long n)
{
	try {
		constructs(n);
	} catch (...) {
		return std::current_exception();
	}
	return nullptr;
}
KEPT long across_threads(long n)
{
	std::exception_ptr captured = captures(n);
	if (!captured)
		return 1;
	long result = 0;
	std::thread thread([&] {
		try {
			std::rethrow_exception(captured);
		} catch (long value) {
			result = value;
		} catch (...) {
			result = 2;
		}
	});
	thread.join();
	return result;
}
KEPT void waits()
{
	Guard guard;
	for (;;)
		pause();
}
KEPT void *cancelled(void *)
{
	Guard guard;
	waits();
	return nullptr;
}
KEPT long cancels()
{
	pthread_t thread;
	void *result;
	pthread_create(&thread, nullptr, cancelled, nullptr);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	return result == PTHREAD_CANCELED ? 3 : -1;
}
KEPT void leaves(long n)
{
	Guard guard;
	if (n)
		pthread_exit((void *)n);
}
KEPT void *leaving(void *n)
{
	Guard guard;
	leaves((long)n);
	return nullptr;
}
KEPT long exits(long n)
{
	pthread_t thread;
	void *result;
	pthread_create(&thread, nullptr, leaving, (void *)(n + 1));
	pthread_join(thread, &result);
	return (long)result;
}
static jmp_buf back;
KEPT void jumps(long n)
{
	if (n % 2)
		longjmp(back, 4);
}
KEPT long jumped(long n)
{
	int value = setjmp(back);
	if (value)
		return value;
	jumps(n);
	return 1;
}
KEPT long in_another(long n)
{
	auto task = std::async(std::launch::async, [n] {
		if (n % 2)
			throw std::out_of_range("odd");
		return n;
	});
	try {
		return task.get();
	} catch (std::out_of_range &) {
		return 9;
	}
}
KEPT long bounds(long n)
{
	std::vector<int> three(3);
	try {
		return three.at(n % 5);
	} catch (std::exception &) {
		return 11;
	}
}
// The callback is called by the C library.
KEPT int throws(const void *, const void *) { throw 13L; }
KEPT long through_libc(long n)
{
	int values[4] = {3, 1, 2, 4};
	try {
		if (n % 2)
			qsort(values, 4, sizeof(int), throws);
		return 2;
	} catch (long value) {
		return value;
	}
}
KEPT int frames(int depth)
{
	void *at[64];
	if (!depth)
		return backtrace(at, 64);
	int found = frames(depth - 1);
	asm volatile("" : "+r"(found));
	return found;
}

static long one_round()
{
	long sum = 0;
	for (long n = 0; n < 60; n++) {
		sum += unwraps(n) + bounds(n) + jumped(n) + through_libc(n);
		if (n % 20 == 0)
			sum += across_threads(n) + cancels() + exits(n) + in_another(n);
	}
	return sum + 100 * frames(9);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 0, wrong = 0, n = 0;
	const char *ready = getenv("READY_FILE");

	signal(SIGTERM, [](int) { stop = 1; });
	long expected = one_round();
	if (ready)
		close(open(ready, O_CREAT | O_WRONLY, 0600));
	for (; rounds ? n < rounds : !stop; n++)
		wrong += one_round() != expected;
	// A cancelled thread may end before it has a guard: what it had was cleaned by then.
	printf("sum %ld, %ld wrong\n", expected, wrong);
	return wrong || !cleaned.load();
}
