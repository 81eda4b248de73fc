// Exceptions out of a plug-in, which is unloaded while one of them is handled, and loaded again. Others throw meanwhile. Each
// line of the input is a round; the end of input ends it.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

typedef int Call(int (*)(int (*)(int)));

static std::atomic<bool> ends;
static std::atomic<long> cleaned;
struct Guard {
	~Guard() { cleaned++; }
};

KEPT int raises(int (*)(int)) { throw std::runtime_error("out of the plug-in"); }
KEPT long uses(void *plug_in, const char *path)
{
	Guard guard;
	Call *call = (Call *)dlsym(plug_in, "call_back");
	try {
		return call(raises);
	} catch (std::runtime_error &error) {
		// Its frames are gone, and so is their code now.
		dlclose(plug_in);
		if (dlopen(path, RTLD_NOW | RTLD_NOLOAD))
			abort();
		return (long)std::string(error.what()).size();
	}
}
KEPT long throws(long n)
{
	Guard guard;
	if (n & 1)
		throw n;
	return n;
}
KEPT void others()
{
	for (long n = 0; !ends; n++) {
		try {
			throws(n);
		} catch (long thrown) {
			if (thrown != n)
				abort();
		}
	}
}

int main(int, char **argv)
{
	char line[16];
	void *plug_in = dlopen(argv[1], RTLD_NOW);
	std::thread thread(others);
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	while (plug_in && fgets(line, sizeof line, stdin)) {
		printf("%ld\n", uses(plug_in, argv[1]));
		fflush(stdout);
		plug_in = dlopen(argv[1], RTLD_NOW);
	}
	ends = true;
	thread.join();
}
