// A thread waits deep in frames that exceptions pass through. For each line of its input: `throw` lets one pass and goes back to
// wait; `fork` does so in a child, too; the end of input ends it. Says what it caught.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static int cleaned;
struct Guard {
	~Guard() { cleaned++; }
};
static char line[64];

KEPT void waits()
{
	if (!fgets(line, sizeof line, stdin))
		exit(0);
	if (!strcmp(line, "fork\n")) {
		pid_t child = fork();
		int status = 1;
		if (child && (waitpid(child, &status, 0) != child || status))
			_exit(3);
	}
	throw std::runtime_error(line);
}
KEPT long holds(int depth)
{
	Guard guard;
	if (depth)
		return holds(depth - 1) + cleaned;
	waits();
	return cleaned;
}
KEPT bool catches(pid_t parent)
{
	try {
		holds(8);
	} catch (std::runtime_error &caught) {
		if (getpid() != parent)
			_exit(cleaned != 9);
		printf("caught %d %s", cleaned, caught.what());
		fflush(stdout);
		cleaned = 0;
		return true;
	}
	return false;
}

int main()
{
	pid_t parent = getpid();
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	while (catches(parent))
		;
}
