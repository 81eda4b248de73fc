// Threads that are cancelled wherever they may be: at many cancellation points, before they have begun, below frames that
// clean up, catch and go on. Every thread must end as cancelled, with all of its frames cleaned up. Until SIGTERM.
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, used))

static volatile sig_atomic_t stop;
static std::atomic<long> made, gone, caught;
static int empty_pipe[2], silent[2], nothing;
static sem_t never;

struct Guard {
	Guard() { made++; }
	~Guard() { gone++; }
};

KEPT static void waits(int how)
{
	char byte;
	sigset_t usr2;
	int signal_number;
	struct epoll_event event;
	struct timespec long_time = {1000, 0};
	fd_set set;
	switch (how) {
	case 0: (void)!read(empty_pipe[0], &byte, 1); break;
	case 1: poll(nullptr, 0, -1); break;
	case 2: nanosleep(&long_time, nullptr); break;
	case 3: {
		std::mutex mutex;
		std::condition_variable condition;
		std::unique_lock<std::mutex> lock(mutex);
		condition.wait(lock, [] { return false; });
		break;
	}
	case 4: sem_wait(&never); break;
	case 5:
		FD_ZERO(&set);
		FD_SET(empty_pipe[0], &set);
		select(empty_pipe[0] + 1, &set, nullptr, nullptr, nullptr);
		break;
	case 6: pause(); break;
	case 7: recv(silent[0], &byte, 1, 0); break;
	case 8: epoll_wait(nothing, &event, 1, -1); break;
	case 9:
		sigemptyset(&usr2);
		sigaddset(&usr2, SIGUSR2);
		sigwait(&usr2, &signal_number);
		break;
	case 10: usleep(900000000); break;
	default:
		for (;;)
			pthread_testcancel();
	}
}
KEPT static long nests(int how, int depth)
{
	Guard guard;
	if (!depth) {
		waits(how);
		return how;
	}
	try {
		return nests(how, depth - 1) + made;
	} catch (...) {
		caught++;
		throw;
	}
}
KEPT static void *begins(void *how)
{
	nests((int)(long)how, 6);
	return nullptr;
}

static const int WAYS = 12;

static long one_round()
{
	pthread_t threads[WAYS];
	long wrong = 0;
	for (long how = 0; how < WAYS; how++)
		if (pthread_create(&threads[how], nullptr, begins, (void *)how))
			return 1;
	for (pthread_t thread : threads)
		pthread_cancel(thread);
	for (pthread_t thread : threads) {
		void *result = nullptr;
		wrong += pthread_join(thread, &result) || result != PTHREAD_CANCELED;
	}
	return wrong + (made != gone);
}

int main()
{
	long rounds = 0, wrong = 0;
	sigset_t usr2;

	if (pipe(empty_pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, silent) || sem_init(&never, 0, 0))
		return 2;
	nothing = epoll_create1(0);
	sigemptyset(&usr2);
	sigaddset(&usr2, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
	signal(SIGTERM, [](int) { stop = 1; });
	wrong += one_round();
	close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
	for (; !stop; rounds++)
		wrong += one_round();
	// Most threads have begun before they are cancelled.
	printf("%ld rounds, %ld caught, %ld wrong\n", rounds, caught.load(), wrong);
	return wrong != 0 || caught == 0;
}
