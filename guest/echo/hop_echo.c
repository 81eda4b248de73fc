// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A TCP echo server as a kernel module: what servers in user space, and those made of BPF programs, are set
 * against. A connection is one work item, queued when its socket says that there is something to do, and it
 * never waits in there: as many connections as there are get their turns, whatever number of workers the
 * kernel allows, and unloading waits for none of their clients.
 *
 *   insmod hop_echo.ko port=7007 backlog=4096
 *
 * Listens on 127.0.0.1. The last line at unloading: how many connections and bytes there were, and how many
 * connections are left (0, or memory is lost).
 */
#define pr_fmt(format) KBUILD_MODNAME ": " format

#include <linux/atomic.h>
#include <linux/in.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <net/tcp.h>

/* What a connection takes fills a block of the allocator's. */
#define CONNECTION_BYTES (16 << 10)
#define CHUNK (CONNECTION_BYTES - 128)
/* Others wait for this connection's worker. */
#define CHUNKS_IN_A_TURN 16

static ushort port = 7007;
module_param(port, ushort, 0444);
static int backlog = 4096;
module_param(backlog, int, 0444);

struct connection {
	struct work_struct work;
	struct list_head in_all;
	struct socket *socket;
	/* Read and not sent yet: `length` bytes from `begin`. */
	size_t begin, length;
	char bytes[CHUNK];
};
static_assert(sizeof(struct connection) <= CONNECTION_BYTES);

static struct socket *listener;
static struct workqueue_struct *turns;
static LIST_HEAD(all);
/* Of `all`, and of unloading's right to queue those in it. */
static DEFINE_MUTEX(all_lock);
static bool stopping;
static atomic_long_t served, echoed, left;

/* What a TCP socket does when nobody has asked for anything else. */
static struct {
	void (*data_ready)(struct sock *sk);
	void (*write_space)(struct sock *sk);
	void (*state_change)(struct sock *sk);
} plain;

/* ---- What a socket calls: under its lock, often in a soft interrupt. ---- */

static void take_turn(struct sock *sk)
{
	struct connection *c;

	read_lock_bh(&sk->sk_callback_lock);
	c = sk->sk_user_data;
	if (c)
		queue_work(turns, &c->work);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void has_room(struct sock *sk)
{
	if (!sk_stream_is_writeable(sk))
		return;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	take_turn(sk);
}

static void listen_on(struct sock *sk, struct connection *c)
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = c;
	sk->sk_data_ready = take_turn;
	sk->sk_write_space = has_room;
	sk->sk_state_change = take_turn;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* From here on nobody queues the connection's work but itself. */
static void be_deaf(struct sock *sk)
{
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = plain.data_ready;
	sk->sk_write_space = plain.write_space;
	sk->sk_state_change = plain.state_change;
	write_unlock_bh(&sk->sk_callback_lock);
}

/* ---- A connection's turn. ---- */

static void end(struct connection *c)
{
	bool is_last;

	be_deaf(c->socket->sk);
	mutex_lock(&all_lock);
	/* Queued once more meanwhile: that turn comes here too, and is the last. */
	is_last = !work_pending(&c->work);
	if (is_last)
		list_del(&c->in_all);
	mutex_unlock(&all_lock);
	if (!is_last)
		return;
	sock_release(c->socket);
	kfree(c);
	atomic_long_dec(&left);
}

static int receive(struct connection *c)
{
	struct kvec place = { .iov_base = c->bytes, .iov_len = CHUNK };
	struct msghdr how = { .msg_flags = MSG_DONTWAIT };

	return kernel_recvmsg(c->socket, &how, &place, 1, CHUNK, MSG_DONTWAIT);
}

static int send(struct connection *c)
{
	struct kvec place = { .iov_base = c->bytes + c->begin, .iov_len = c->length };
	struct msghdr how = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

	return kernel_sendmsg(c->socket, &how, &place, 1, c->length);
}

static void turn(struct work_struct *work)
{
	struct connection *c = container_of(work, struct connection, work);
	int chunk, n;

	for (chunk = 0; chunk < CHUNKS_IN_A_TURN && !READ_ONCE(stopping); chunk++) {
		if (c->length == 0) {
			n = receive(c);
			if (n == -EAGAIN)
				return;
			/* The client's end of the connection: all that it sent has gone back. */
			if (n <= 0) {
				end(c);
				return;
			}
			c->begin = 0;
			c->length = n;
		}
		n = send(c);
		if (n == -EAGAIN)
			return;
		if (n < 0) {
			end(c);
			return;
		}
		c->begin += n;
		c->length -= n;
		atomic_long_add(n, &echoed);
	}
	if (READ_ONCE(stopping))
		end(c);
	else
		queue_work(turns, &c->work);
}

/* ---- Accepting. ---- */

static void begin(struct socket *socket)
{
	struct connection *c = kmalloc(sizeof(*c), GFP_KERNEL);

	if (!c) {
		pr_warn("no memory for a connection\n");
		be_deaf(socket->sk);
		sock_release(socket);
		return;
	}
	INIT_WORK(&c->work, turn);
	c->socket = socket;
	c->begin = c->length = 0;
	tcp_sock_set_nodelay(socket->sk);
	atomic_long_inc(&served);
	atomic_long_inc(&left);
	mutex_lock(&all_lock);
	list_add(&c->in_all, &all);
	mutex_unlock(&all_lock);
	listen_on(socket->sk, c);
	/* What came before it was accepted has told nobody. */
	queue_work(turns, &c->work);
}

static void accept_all(struct work_struct *work)
{
	struct socket *socket;
	int error;

	while (!(error = kernel_accept(listener, &socket, O_NONBLOCK)))
		begin(socket);
	if (error != -EAGAIN)
		pr_warn("accept: error %d\n", error);
}

static DECLARE_WORK(accepting, accept_all);

/* Connections inherit this until they are accepted. */
static void connection_waits(struct sock *sk)
{
	if (sk->sk_state == TCP_LISTEN)
		queue_work(turns, &accepting);
}

/* ---- Loading and unloading. ---- */

static int __init start(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port),
	};
	struct sock *sk;
	int error;

	turns = alloc_workqueue("hop_echo", 0, 0);
	if (!turns)
		return -ENOMEM;
	error = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &listener);
	if (error)
		goto no_socket;
	sk = listener->sk;
	sock_set_reuseaddr(sk);
	error = kernel_bind(listener, (struct sockaddr *)&at, sizeof(at));
	if (error)
		goto no_port;
	write_lock_bh(&sk->sk_callback_lock);
	plain.data_ready = sk->sk_data_ready;
	plain.write_space = sk->sk_write_space;
	plain.state_change = sk->sk_state_change;
	sk->sk_data_ready = connection_waits;
	write_unlock_bh(&sk->sk_callback_lock);
	error = kernel_listen(listener, backlog);
	if (error)
		goto no_port;
	pr_info("listening on 127.0.0.1:%u, backlog %d\n", port, backlog);
	return 0;
no_port:
	sock_release(listener);
no_socket:
	destroy_workqueue(turns);
	return error;
}

static void __exit stop(void)
{
	struct connection *c;

	be_deaf(listener->sk);
	cancel_work_sync(&accepting);
	/* With those that were never accepted. */
	sock_release(listener);
	WRITE_ONCE(stopping, true);
	mutex_lock(&all_lock);
	list_for_each_entry(c, &all, in_all) {
		be_deaf(c->socket->sk);
		queue_work(turns, &c->work);
	}
	mutex_unlock(&all_lock);
	destroy_workqueue(turns);
	/* A soft interrupt may still be in a function of ours that it got from a socket before. */
	synchronize_rcu();
	pr_info("%ld connections, %ld bytes, %ld left\n", atomic_long_read(&served),
		atomic_long_read(&echoed), atomic_long_read(&left));
}

module_init(start);
module_exit(stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("TCP echo, to compare other servers with");
