/* Coroutines that go from thread to thread, each time to any of three. A line of input says how many calls of `outer` each coroutine
 * makes; the answer is what each of them was, by the program's own clock: thread, begin, end, whether it moved. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>

enum { THREADS = 3, COROUTINES = 7, STACK = 1 << 21, CALLS = 4096 };
struct truth { int tid, moved; unsigned long begin, end; };
static struct coroutine {
	ucontext_t here, *worker;
	int tid, next;
	unsigned seed, calls, wanted;
	struct truth truths[CALLS];
	int queued, inside;
} coroutines[COROUTINES];
static unsigned working;
static volatile unsigned long steps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin, end;

__attribute__((noinline)) static void leave(struct coroutine *co) { swapcontext(&co->here, co->worker); }
__attribute__((noinline)) void inner(void)
{
	steps++;
	asm volatile("");
}
__attribute__((noinline)) void outer(struct coroutine *co)
{
	struct truth *truth = &co->truths[co->calls++];
	truth->begin = __rdtsc();
	truth->tid = co->tid;
	truth->moved = 0;
	for (int n = 0; n < 2; n++) {
		inner();
		if (rand_r(&co->seed) % 4)
			continue;
		co->inside = 1;
		leave(co);
		co->inside = 0;
		inner();
		truth->moved |= co->tid != truth->tid;
	}
	truth->end = __rdtsc();
}
static void calls(int index)
{
	struct coroutine *co = &coroutines[index];
	for (;;) {
		if (co->calls == co->wanted)
			leave(co);
		else
			outer(co);
	}
}
static struct coroutine *take(int thread)
{
	struct coroutine *mine = 0;
	pthread_mutex_lock(&lock);
	for (int n = 0; n < COROUTINES && !mine; n++)
		if (coroutines[n].queued && coroutines[n].next == thread)
			mine = &coroutines[n];
	if (mine)
		mine->queued = 0;
	pthread_mutex_unlock(&lock);
	return mine;
}
static void give(struct coroutine *co)
{
	pthread_mutex_lock(&lock);
	co->next = rand_r(&co->seed) % THREADS;
	co->queued = co->calls < co->wanted || co->inside;
	working -= !co->queued;
	pthread_mutex_unlock(&lock);
}
static void work(int number, int tid)
{
	ucontext_t worker;
	while (__atomic_load_n(&working, __ATOMIC_ACQUIRE)) {
		struct coroutine *co = take(number);
		if (!co) {
			sched_yield();
			continue;
		}
		co->worker = &worker;
		co->tid = tid;
		swapcontext(&worker, &co->here);
		give(co);
	}
}
static void *thread(void *number)
{
	for (;;) {
		pthread_barrier_wait(&begin);
		work((long)number, syscall(SYS_gettid));
		pthread_barrier_wait(&end);
	}
	return number;
}

int main(void)
{
	char line[32];
	for (int n = 0; n < COROUTINES; n++) {
		struct coroutine *co = &coroutines[n];
		getcontext(&co->here);
		co->seed = n;
		co->here.uc_stack.ss_sp = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		co->here.uc_stack.ss_size = STACK;
		makecontext(&co->here, (void (*)(void))calls, 1, n);
	}
	pthread_barrier_init(&begin, 0, THREADS + 1);
	pthread_barrier_init(&end, 0, THREADS + 1);
	pthread_t threads[THREADS];
	for (long n = 0; n < THREADS; n++)
		pthread_create(&threads[n], 0, thread, (void *)n);
	while (fgets(line, sizeof line, stdin)) {
		unsigned each = strtoul(line, 0, 10);
		if (each > CALLS)
			return 1;
		for (int n = 0; n < COROUTINES; n++) {
			coroutines[n].calls = 0;
			coroutines[n].wanted = each;
			coroutines[n].queued = 1;
		}
		working = COROUTINES;
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		for (int n = 0; n < COROUTINES; n++)
			for (unsigned call = 0; call < each; call++) {
				struct truth *t = &coroutines[n].truths[call];
				printf("%d %lu %lu %d\n", t->tid, t->begin, t->end, t->moved);
			}
		puts(".");
		fflush(stdout);
	}
	return 0;
}
