/* Sits in one system call until a byte arrives on stdin, which makes its event happen.
 * Prints OK when the call then returned just as it does in a process that nobody stopped. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NEED(x) do { if ((long)(x) < 0) { printf("CANNOT %s: %s\n", #x, strerror(errno)); exit(3); } } while (0)

static int fds[2] = {-1, -1}, extra = -1, ipc_id = -1;
static pthread_t main_thread;
static volatile sig_atomic_t handled;
static volatile int word;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pid_t child;
static char path[64];

static void handler(int s) { (void)s; handled = 1; }
static struct timespec in_seconds(int s) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += s;
	return t;
}
static const struct timespec minute = {60, 0};
static const struct timespec second = {1, 0};

/* --- preparations --- */
static void make_pipe(void) { NEED(pipe(fds)); }
static void make_sockets(void) { NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, fds)); }
static void make_datagrams(void) { NEED(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds)); }
static void with_time_out(void) {
	struct timeval t = {60, 0};
	make_sockets();
	NEED(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
}
static void make_full_pipe(void) {
	static char junk[4096];
	make_pipe();
	NEED(fcntl(fds[1], F_SETPIPE_SZ, 4096));
	NEED(write(fds[1], junk, sizeof junk));
}
static void make_epoll(void) {
	struct epoll_event e = {.events = EPOLLIN};
	make_pipe();
	NEED(extra = epoll_create1(0));
	NEED(epoll_ctl(extra, EPOLL_CTL_ADD, fds[0], &e));
}
static struct sockaddr_un address = {AF_UNIX, ""};
static socklen_t address_len;
static void make_listener(void) {
	address_len = sizeof(sa_family_t) + 1 + sprintf(address.sun_path + 1, "hopscope-%d", getpid());
	NEED(extra = socket(AF_UNIX, SOCK_STREAM, 0));
	NEED(bind(extra, (void *)&address, address_len));
	NEED(listen(extra, 0));
	NEED(fds[0] = socket(AF_UNIX, SOCK_STREAM, 0));
}
static void make_listener_time_out(void) {
	struct timeval t = {60, 0};
	make_listener();
	NEED(setsockopt(extra, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
}
static void make_full_listener(void) {
	make_listener();
	NEED(fds[1] = socket(AF_UNIX, SOCK_STREAM, 0));
	NEED(connect(fds[1], (void *)&address, address_len));
}
static void make_tty(void) {
	NEED(fds[1] = posix_openpt(O_RDWR | O_NOCTTY));
	NEED(grantpt(fds[1]));
	NEED(unlockpt(fds[1]));
	NEED(fds[0] = open(ptsname(fds[1]), O_RDWR | O_NOCTTY));
}
static void make_eventfd(void) { NEED(fds[0] = eventfd(0, 0)); fds[1] = fds[0]; }
static void make_timerfd(void) {
	struct itimerspec t = {.it_value = {1, 0}};
	NEED(fds[0] = timerfd_create(CLOCK_MONOTONIC, 0));
	NEED(timerfd_settime(fds[0], 0, &t, NULL));
}
static void make_inotify(void) {
	sprintf(path, "/tmp/hopscope-test-%d", getpid());
	NEED(close(open(path, O_CREAT | O_RDWR, 0600)));
	NEED(fds[0] = inotify_init1(0));
	NEED(inotify_add_watch(fds[0], path, IN_ATTRIB));
}
static void catch_usr1(void) {
	struct sigaction a = {.sa_handler = handler};
	NEED(sigaction(SIGUSR1, &a, NULL));
}
static void block_usr1(void) {
	sigset_t s;
	catch_usr1();
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	NEED(pthread_sigmask(SIG_BLOCK, &s, NULL));
}
static void make_semaphore(void) { NEED(ipc_id = semget(IPC_PRIVATE, 1, 0600)); }
static void make_queue(void) { NEED(ipc_id = msgget(IPC_PRIVATE, 0600)); }
static mqd_t mq;
static void make_mq(void) {
	struct mq_attr a = {.mq_maxmsg = 1, .mq_msgsize = 8};
	sprintf(path, "/hopscope-test-%d", getpid());
	NEED(mq = mq_open(path, O_CREAT | O_RDWR, 0600, &a));
	mq_unlink(path);
}
static aio_context_t aio;
static struct iocb request, *requests[] = {&request};
static void make_aio(void) {
	make_eventfd();
	NEED(syscall(SYS_io_setup, 4, &aio));
	request.aio_lio_opcode = IOCB_CMD_POLL;
	request.aio_fildes = fds[0];
	request.aio_buf = POLLIN;
	NEED(syscall(SYS_io_submit, aio, 1, requests));
}
static void make_uring(void) {
	struct io_uring_params p = {0};
	make_pipe();
	NEED(extra = syscall(SYS_io_uring_setup, 4, &p));
	char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, extra, IORING_OFF_SQ_RING);
	struct io_uring_sqe *e = mmap(0, p.sq_entries * sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED, extra, IORING_OFF_SQES);
	e->opcode = IORING_OP_POLL_ADD;
	e->fd = fds[0];
	e->poll32_events = POLLIN;
	*(unsigned *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((unsigned *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	NEED(syscall(SYS_io_uring_enter, extra, 1, 0, 0, NULL, 0));
}
static void make_child(void) {
	char c;
	make_pipe();
	child = fork();
	NEED(child);
	if (child == 0) {
		close(fds[1]);
		_exit(read(fds[0], &c, 1) == 1 ? 7 : 8);
	}
}
static void make_file(void) {
	sprintf(path, "/tmp/hopscope-test-%d", getpid());
	NEED(extra = open(path, O_CREAT | O_RDWR, 0600));
}
static void make_flock(void) {
	make_file();
	NEED(fds[1] = open(path, O_RDWR));
	NEED(flock(fds[1], LOCK_EX));
}
/* Record locks belong to processes: a child holds it. */
static void make_record_lock(void) {
	struct flock l = {.l_type = F_WRLCK};
	char c = 0;
	int held[2];
	make_file();
	make_pipe();
	NEED(pipe(held));
	child = fork();
	NEED(child);
	if (child == 0) {
		close(fds[1]);
		NEED(fcntl(extra, F_SETLKW, &l));
		NEED(write(held[1], &c, 1));
		_exit(read(fds[0], &c, 1) != 1);
	}
	NEED(read(held[0], &c, 1));
}
static void make_sem(void) { NEED(sem_init(&sem, 0, 0)); }
static void nothing(void) {}

/* --- events --- */
static void write_one(void) { char c = 'x'; NEED(write(fds[1], &c, 1)); }
static void write_line(void) { NEED(write(fds[1], "x\n", 2)); }
static void write_eight(void) { unsigned long n = 1; NEED(write(fds[1], &n, 8)); }
static void drain(void) { char b[4096]; NEED(read(fds[0], b, sizeof b)); }
static void join_in(void) { NEED(connect(fds[0], (void *)&address, address_len)); }
static void take_both(void) { NEED(accept(extra, 0, 0)); NEED(accept(extra, 0, 0)); }
static void change_file(void) { NEED(chmod(path, 0644)); }
static void signal_main(void) { NEED(-pthread_kill(main_thread, SIGUSR1)); }
static void raise_semaphore(void) { struct sembuf b = {0, 1, 0}; NEED(semop(ipc_id, &b, 1)); }
struct message { long type; char text[8]; };
static void send_message(void) { struct message m = {1, "hello"}; NEED(msgsnd(ipc_id, &m, 8, 0)); }
static void send_mq(void) { NEED(mq_send(mq, "hello", 5, 0)); }
static void unlock(void) { NEED(flock(fds[1], LOCK_UN)); }
static void post(void) { NEED(sem_post(&sem)); }
static void wake(void) {
	word = 1;
	NEED(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0));
}
static void wake_cond(void) {
	pthread_mutex_lock(&mutex);
	word = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
}

/* --- the calls: 1 is right --- */
static char buffer[64];
static int c_nanosleep(void) { return nanosleep(&second, NULL) == 0; }
static int c_clock_nanosleep(void) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL) == 0; }
static int c_clock_nanosleep_abs(void) {
	struct timespec t = in_seconds(1);
	return clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL) == 0;
}
static int c_poll(void) { struct pollfd p = {fds[0], POLLIN, 0}; return syscall(SYS_poll, &p, 1, 60000) == 1; }
static int c_poll_time_out(void) { struct pollfd p = {fds[0], POLLIN, 0}; return syscall(SYS_poll, &p, 1, 1000) == 0; }
static int c_ppoll(void) {
	struct pollfd p = {fds[0], POLLIN, 0};
	sigset_t s;
	sigfillset(&s);
	return ppoll(&p, 1, &minute, &s) == 1;
}
static int c_select(void) {
	fd_set f;
	struct timeval t = {60, 0};
	FD_ZERO(&f);
	FD_SET(fds[0], &f);
	return syscall(SYS_select, fds[0] + 1, &f, 0, 0, &t) == 1;
}
static int c_pselect(void) {
	fd_set f;
	sigset_t s;
	sigfillset(&s);
	FD_ZERO(&f);
	FD_SET(fds[0], &f);
	return pselect(fds[0] + 1, &f, 0, 0, &minute, &s) == 1;
}
/* The signal is let in by the call's own mask only. */
static int c_ppoll_signal(void) {
	sigset_t s;
	sigemptyset(&s);
	return ppoll(NULL, 0, &minute, &s) == -1 && errno == EINTR && handled;
}
static int c_epoll_wait(void) { struct epoll_event e; return syscall(SYS_epoll_wait, extra, &e, 1, 60000) == 1; }
static int c_epoll_forever(void) { struct epoll_event e; return syscall(SYS_epoll_wait, extra, &e, 1, -1) == 1; }
static int c_epoll_pwait(void) {
	struct epoll_event e;
	sigset_t s;
	sigfillset(&s);
	return epoll_pwait(extra, &e, 1, 60000, &s) == 1;
}
static int c_epoll_pwait_signal(void) {
	struct epoll_event e;
	sigset_t s;
	sigemptyset(&s);
	return epoll_pwait(extra, &e, 1, 60000, &s) == -1 && errno == EINTR && handled;
}
static int c_epoll_signal(void) {
	struct epoll_event e;
	return syscall(SYS_epoll_wait, extra, &e, 1, 60000) == -1 && errno == EINTR && handled;
}
static int c_read(void) { return read(fds[0], buffer, 64) > 0; }
static int c_write(void) { return write(fds[1], buffer, 1) == 1; }
static int c_recv(void) { return recv(fds[0], buffer, 64, 0) == 1; }
static int c_recvmsg(void) {
	struct iovec v = {buffer, 64};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	return recvmsg(fds[0], &m, 0) == 1;
}
static int c_recvmmsg(void) {
	struct iovec v = {buffer, 64};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
	return recvmmsg(fds[0], &m, 1, 0, NULL) == 1;
}
static int c_accept(void) { return accept(extra, 0, 0) >= 0; }
static int c_connect(void) { return connect(fds[0], (void *)&address, address_len) == 0; }
/* A wait that begins after the word has changed says EAGAIN, restarted or not: every user of futexes
 * looks at the word then. */
static int woken(long r) { return r == 0 || (errno == EAGAIN && word); }
static int c_futex(void) { return woken(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, 0, 0)); }
static int c_futex_time_out(void) { return woken(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &minute, 0, 0)); }
static int c_futex_expires(void) {
	return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &second, 0, 0) == -1 && errno == ETIMEDOUT;
}
static int c_sem_timedwait(void) { struct timespec t = in_seconds(60); return sem_timedwait(&sem, &t) == 0; }
static int c_cond_timedwait(void) {
	struct timespec t = in_seconds(60);
	pthread_mutex_lock(&mutex);
	int r = 0;
	while (!word && !r)
		r = pthread_cond_timedwait(&cond, &mutex, &t);
	return r == 0;
}
static int c_sigtimedwait(void) {
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	return sigtimedwait(&s, NULL, &minute) == SIGUSR1 && !handled;
}
static int c_sigwaitinfo(void) {
	sigset_t s;
	sigemptyset(&s);
	sigaddset(&s, SIGUSR1);
	return sigwaitinfo(&s, NULL) == SIGUSR1 && !handled;
}
static int c_sigsuspend(void) {
	sigset_t s;
	sigemptyset(&s);
	return sigsuspend(&s) == -1 && errno == EINTR && handled;
}
static int c_pause(void) { return syscall(SYS_pause) == -1 && errno == EINTR && handled; }
static int c_semtimedop(void) { struct sembuf b = {0, -1, 0}; return semtimedop(ipc_id, &b, 1, &minute) == 0; }
static int c_semop(void) { struct sembuf b = {0, -1, 0}; return semop(ipc_id, &b, 1) == 0; }
static int c_msgrcv(void) { struct message m; return msgrcv(ipc_id, &m, 8, 0, 0) == 8; }
static int c_mq(void) { struct timespec t = in_seconds(60); return mq_timedreceive(mq, buffer, 64, NULL, &t) == 5; }
static int c_io_getevents(void) { struct io_event e; return syscall(SYS_io_getevents, aio, 1, 1, &e, &minute) == 1; }
static int c_io_uring(void) { return syscall(SYS_io_uring_enter, extra, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 0; }
static int c_wait4(void) { int s; return wait4(child, &s, 0, NULL) == child && WEXITSTATUS(s) == 7; }
static int c_waitid(void) { siginfo_t i; return waitid(P_PID, child, &i, WEXITED) == 0 && i.si_status == 7; }
static int c_flock(void) { return flock(extra, LOCK_EX) == 0; }
static int c_setlkw(void) { struct flock l = {.l_type = F_WRLCK}; return fcntl(extra, F_SETLKW, &l) == 0; }

static const struct { const char *name; void (*prepare)(void); int (*call)(void); void (*event)(void); } cases[] = {
	{"nanosleep", nothing, c_nanosleep, nothing},
	{"clock_nanosleep", nothing, c_clock_nanosleep, nothing},
	{"clock_nanosleep_absolute", nothing, c_clock_nanosleep_abs, nothing},
	{"poll", make_pipe, c_poll, write_one},
	{"poll_time_out", make_pipe, c_poll_time_out, nothing},
	{"ppoll", make_pipe, c_ppoll, write_one},
	{"ppoll_signal", block_usr1, c_ppoll_signal, signal_main},
	{"select", make_pipe, c_select, write_one},
	{"pselect", make_pipe, c_pselect, write_one},
	{"epoll_wait", make_epoll, c_epoll_wait, write_one},
	{"epoll_wait_forever", make_epoll, c_epoll_forever, write_one},
	{"epoll_wait_signal", make_epoll, c_epoll_signal, signal_main},
	{"epoll_pwait", make_epoll, c_epoll_pwait, write_one},
	{"epoll_pwait_signal", make_epoll, c_epoll_pwait_signal, signal_main},
	{"recv", make_sockets, c_recv, write_one},
	{"recv_time_out", with_time_out, c_recv, write_one},
	{"recvmsg_time_out", with_time_out, c_recvmsg, write_one},
	{"recvmmsg", make_datagrams, c_recvmmsg, write_one},
	{"accept", make_listener, c_accept, join_in},
	{"accept_time_out", make_listener_time_out, c_accept, join_in},
	{"connect", make_full_listener, c_connect, take_both},
	{"read_pipe", make_pipe, c_read, write_one},
	{"read_socket", make_sockets, c_read, write_one},
	{"read_tty", make_tty, c_read, write_line},
	{"read_eventfd", make_eventfd, c_read, write_eight},
	{"read_timerfd", make_timerfd, c_read, nothing},
	{"read_inotify", make_inotify, c_read, change_file},
	{"write_pipe", make_full_pipe, c_write, drain},
	{"futex_wait", nothing, c_futex, wake},
	{"futex_wait_time_out", nothing, c_futex_time_out, wake},
	{"futex_wait_expires", nothing, c_futex_expires, nothing},
	{"sem_timedwait", make_sem, c_sem_timedwait, post},
	{"pthread_cond_timedwait", nothing, c_cond_timedwait, wake_cond},
	{"sigtimedwait", block_usr1, c_sigtimedwait, signal_main},
	{"sigwaitinfo", block_usr1, c_sigwaitinfo, signal_main},
	{"sigsuspend", block_usr1, c_sigsuspend, signal_main},
	{"pause", catch_usr1, c_pause, signal_main},
	{"semop", make_semaphore, c_semop, raise_semaphore},
	{"semtimedop", make_semaphore, c_semtimedop, raise_semaphore},
	{"msgrcv", make_queue, c_msgrcv, send_message},
	{"mq_timedreceive", make_mq, c_mq, send_mq},
	{"io_getevents", make_aio, c_io_getevents, write_eight},
	{"io_uring_enter", make_uring, c_io_uring, write_one},
	{"wait4", make_child, c_wait4, write_one},
	{"waitid", make_child, c_waitid, write_one},
	{"flock", make_flock, c_flock, unlock},
	{"fcntl_setlkw", make_record_lock, c_setlkw, write_one},
};

static void *on_command(void *event) {
	char c;
	if (read(0, &c, 1) != 1)
		_exit(4);
	((void (*)(void))event)();
	return NULL;
}

int main(int argc, char **argv) {
	(void)argc;
	pthread_t t;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		main_thread = pthread_self();
		/* A signal test whose handler is missing would end the process. */
		catch_usr1();
		cases[i].prepare();
		NEED(-pthread_create(&t, NULL, on_command, (void *)cases[i].event));
		puts("ready");
		fflush(stdout);
		errno = 0;
		int right = cases[i].call();
		int error = errno;
		if (path[0])
			unlink(path);
		if (ipc_id >= 0) {
			semctl(ipc_id, 0, IPC_RMID);
			msgctl(ipc_id, IPC_RMID, NULL);
		}
		if (right)
			puts("OK");
		else
			printf("SEEN: %s\n", strerror(error));
		return 0;
	}
	return 3;
}
