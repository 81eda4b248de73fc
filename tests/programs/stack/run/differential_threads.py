"""One thread waits in a call on a socket at ADDRESS, another one does something to it or its peer, at random: what each gave, a line each:
ADDRESS FIRST_SEED PROGRAMS PATIENCE_MS [pairs]. The same lines on the kernel's stack and on another one, or they differ."""
import os
import queue
import random
import select
import socket
import sys
import threading
import time

from differential_calls import named, tried

address, first, programs, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) / 1000
# Where the serving end is one of a pair of unix(7): what is left out for it is in KNOWN_ISSUES.md (`stack run --mode pipeline`).
pairs = sys.argv[5:] == ["pairs"]
FUTEX = "202"


class Waiter:
    """A thread that does one call at a time."""

    def __init__(self):
        self.calls, self.results, self.call = queue.SimpleQueue(), queue.SimpleQueue(), None
        threading.Thread(target=self.run, daemon=True).start()
        self.thread = self.results.get()

    def run(self):
        self.results.put(threading.get_native_id())
        while call := self.calls.get():
            self.results.put("begins")
            self.results.put(tried(call))

    def begins(self, name, call):
        """Returns once it sleeps in the call, or has returned."""
        self.call = name
        self.calls.put(call)
        self.results.get()
        while self.results.empty():
            with open(f"/proc/self/task/{self.thread}/syscall") as file:
                # Not in one for a lock, and not on its way: a number.
                if (now := file.read().split()[0]) not in ("running", "-1", FUTEX):
                    break
            time.sleep(0)

    def result(self, wait=False):
        """`None`: it waits."""
        try:
            # The calls' own minute, which select(2) ends up to 60 ms late (select_estimate_accuracy in fs/select.c).
            found = self.results.get(timeout=90) if wait else self.results.get_nowait()
        except queue.Empty:
            return None
        self.call = None
        return found


def settle():
    """The other side's processing, and what it answers."""
    time.sleep(patience)


class World:
    def __init__(self, rng):
        self.rng = rng
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((address, 7))
        self.listener.listen(16)
        self.client = self.connects()
        self.server, _ = self.listener.accept()
        self.clients = []
        self.epoll = select.epoll()
        # What is closed has left its set, and no end is an event for some: nothing else wakes them up.
        self.bell = os.eventfd(0)
        self.epoll.register(self.bell, select.EPOLLIN)
        self.is_shut = self.is_deaf = self.is_shut_down = False
        self.twin = self.waits = None
        # Of a pair: what comes after shutdown(SHUT_RDWR) but for the end is not told.
        self.is_gone = self.has_waited_to_accept = False

    def connects(self):
        client = socket.socket()
        client.connect((address, 7))
        return client


def received(got):
    return len(got) if isinstance(got, bytes) else got


def receives(world):
    server, count, flags = world.server, world.rng.choice([1, 100]), world.rng.choice([0, 0, socket.MSG_WAITALL, socket.MSG_PEEK])
    return f"recv {count} {flags}", lambda: received(server.recv(count, flags))


def receives_message(world):
    server = world.server
    return "recvmsg", lambda: len(server.recvmsg(10)[0])


def polls(world):
    poll = select.poll()
    bits = world.rng.choice([select.POLLIN, select.POLLIN | select.POLLRDHUP, select.POLLRDHUP, 0])
    poll.register(world.server, bits)
    poll.register(world.bell, select.POLLIN)
    return f"poll {bits:x}", lambda: [told(found) for _, found in poll.poll(60_000)]


def selects(world):
    server = world.server
    return "select", lambda: [len(part) for part in select.select([server], [], [server], 60)]


def waits(world):
    bits = world.rng.choice([select.EPOLLIN, select.EPOLLIN | select.EPOLLET, select.EPOLLIN | select.EPOLLRDHUP, select.EPOLLIN | select.EPOLLONESHOT])
    epoll = world.epoll
    tried(lambda: epoll.unregister(world.server))
    epoll.register(world.server, bits)
    return f"epoll {bits & 0xffffffff:x}", lambda: [told(found) for _, found in epoll.poll(60)]


def accepts(world):
    listener = world.listener
    world.has_waited_to_accept = True
    return "accept", lambda: listener.accept()[0].close()


def polls_listener(world):
    poll = select.poll()
    poll.register(world.listener, select.POLLIN)
    return "poll listener", lambda: [told(found) for _, found in poll.poll(60_000)]


WAITS = [receives, receives, receives_message, polls, selects, waits, waits, accepts, polls_listener]


def told(bits):
    # "After a reset poll and epoll report IN and HUP, and no ERR"
    return named(bits & ~select.EPOLLERR if pairs else bits)


def peer_sends(world):
    if pairs and world.is_deaf:
        # "Bytes that come after shutdown(SHUT_RD) are discarded"
        return "left out"
    return tried(lambda: world.client.send(b"x" * world.rng.choice([1, 50, 3000])))


def peer_shuts(world):
    if world.is_gone:
        return "left out"
    return tried(lambda: world.client.shutdown(socket.SHUT_WR))


def peer_closes(world):
    reset = world.rng.random() < 0.3
    if world.is_gone:
        return "left out"
    if reset:
        tried(lambda: world.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"))
    world.client.close()
    return reset


def peer_connects(world):
    end = tried(world.connects)
    return world.clients.append(end) if isinstance(end, socket.socket) else end


def sends(world):
    return tried(lambda: world.server.send(b"y", socket.MSG_NOSIGNAL))


def shuts(world):
    how = world.rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])
    if pairs and world.is_shut:
        # Once both directions have ended it is not ENOTCONN.
        return "left out"
    world.is_shut = True
    world.is_deaf = how != socket.SHUT_WR
    world.is_gone = pairs and how == socket.SHUT_RDWR
    return f"{how} {tried(lambda: world.server.shutdown(how))}"


def is_polled(world):
    """Inline, poll and select sleep on where another thread closes what they wait for."""
    return not pairs and str(world.waits).startswith(("poll", "select"))


def closes(world):
    if is_polled(world):
        return "left out"
    world.server.close()


def closes_and_opens(world):
    """Another socket may get its number, unless an accept that waited had one: on the stack it has none before it returns."""
    if is_polled(world) or pairs and world.has_waited_to_accept:
        return "left out"
    world.server.close()
    world.twin = socket.socket()


def dups(world):
    if is_polled(world):
        return "left out"
    if world.server.fileno() >= 0:
        world.server, old = world.server.dup(), world.server
        old.close()


def shuts_listener(world):
    if pairs or world.is_shut_down:
        # Of a pair what waits is still accepted, and poll says IN, too; inline a shutdown that fails does not count.
        return "left out"
    world.is_shut_down = True
    return tried(lambda: world.listener.shutdown(socket.SHUT_RDWR))


def watches(world):
    return tried(lambda: world.epoll.modify(world.server, select.EPOLLIN | select.EPOLLOUT))


ACTIONS = [peer_sends, peer_sends, peer_shuts, peer_closes, peer_connects, sends, shuts, closes, closes_and_opens, dups, shuts_listener, watches]


def program(seed):
    rng = random.Random(seed)
    world, waiter = World(rng), Waiter()
    lines = []
    for _ in range(rng.randrange(3, 10)):
        if waiter.call is None and world.server.fileno() >= 0:
            name, call = rng.choice(WAITS)(world)
            waiter.begins(name, call)
            world.waits = name
            settle()
            lines.append(f"{seed} {name}: {waiter.result() if not waiter.results.empty() else 'waits'}")
        action = rng.choice(ACTIONS)
        lines.append(f"{seed} {action.__name__}: {action(world)}")
        settle()
        if waiter.call and not waiter.results.empty():
            lines.append(f"{seed} returned: {waiter.result()}")
    # What there is to wake up for, in the end.
    for name, end in [("peer_closes", lambda: world.client.close()), ("peer_connects", lambda: peer_connects(world)),
                      ("shuts", lambda: shuts(world)),
                      ("shuts_listener", lambda: shuts_listener(world)), ("bell", lambda: os.eventfd_write(world.bell, 1))]:
        if waiter.call is None:
            break
        lines.append(f"{seed} at last {name}: {end()}")
        settle()
        if not waiter.results.empty():
            lines.append(f"{seed} returned: {waiter.result()}")
    if waiter.call:
        # Or the next program's listener finds its port in use.
        result = waiter.result(wait=True)
        assert waiter.call is None, f"{seed} waits for ever: {lines}"
        lines.append(f"{seed} returned late: {result}")
    waiter.calls.put(None)
    for each in [world.server, world.client, world.listener, world.epoll, *world.clients, *([world.twin] if world.twin else [])]:
        each.close()
    os.close(world.bell)
    settle()
    return lines


for seed in range(first, first + programs):
    for line in program(seed):
        print(line, flush=True)
