"""Random socket calls on both ends of a connection whose serving end is at ADDRESS; what each gave, a line each:
ADDRESS FIRST_SEED PROGRAMS PATIENCE_MS. The same lines on the kernel's stack and on another one, or they differ."""
import random
import select
import socket
import sys
import time

from differential_calls import control, dup, error, named, queued, tried

address, first, programs, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) / 1000


class End:
    """A connection, maybe closed, with duplicates, and what was received of a pattern that both ends send."""

    def __init__(self, connection):
        self.sockets = [connection]
        self.sent = self.received = 0

    def any(self, random):
        return random.choice(self.sockets)


def pattern(at, count):
    return bytes((at + n) * 7 % 251 for n in range(count))


def settle():
    """The other side's processing, and what it answers."""
    time.sleep(patience)


def program(seed, listener):
    rng = random.Random(seed)
    client = socket.socket()
    client.connect((address, 7))
    server, _ = listener.accept()
    server.setblocking(False)
    client.setblocking(False)
    settle()
    ends = {"server": End(server), "client": End(client)}
    epoll = select.epoll()
    lines = []
    for _ in range(rng.randrange(4, 24)):
        name = rng.choice(["server", "server", "client"])
        end = ends[name]
        if not end.sockets:
            continue
        one = end.any(rng)
        call = rng.choice(CALLS)
        result = call(rng, end, one, epoll, ends)
        lines.append(f"{seed} {name} {call.__name__}: {result}")
        settle()
        if name == "server" and rng.random() < 0.7:
            lines.append(f"{seed} events: {events(rng, epoll, ends)}")
    for end in ends.values():
        for one in end.sockets:
            one.close()
    epoll.close()
    settle()
    return lines


def send(rng, end, one, epoll, ends):
    count = rng.choice([1, 10, 1000, 5000])
    flags = rng.choice([0, 0, socket.MSG_NOSIGNAL, socket.MSG_DONTWAIT])
    sent = tried(lambda: one.send(pattern(end.sent, count), flags))
    if isinstance(sent, int):
        end.sent += sent
    return f"{count} {sent}"


def recv(rng, end, one, epoll, ends):
    count = rng.choice([0, 1, 10, 1000, 60000])
    flags = rng.choice([0, 0, socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL | socket.MSG_DONTWAIT])
    got = tried(lambda: one.recv(count, flags))
    if isinstance(got, bytes):
        right = got == pattern(end.received, len(got))
        if not flags & socket.MSG_PEEK:
            end.received += len(got)
        got = f"{len(got)} {right}"
    return f"{count} {flags} {got}"


def recv_vectors(rng, end, one, epoll, ends):
    parts = [bytearray(rng.choice([0, 1, 100, 2000])) for _ in range(3)]
    got = tried(lambda: one.recvmsg_into(parts)[0])
    if isinstance(got, int):
        right = b"".join(parts)[:got] == pattern(end.received, got)
        end.received += got
        got = f"{got} {right}"
    return f"{[len(part) for part in parts]} {got}"


def send_vectors(rng, end, one, epoll, ends):
    sizes = [rng.choice([0, 1, 100, 2000]) for _ in range(3)]
    parts, at = [], end.sent
    for size in sizes:
        parts.append(pattern(at, size))
        at += size
    sent = tried(lambda: one.sendmsg(parts))
    if isinstance(sent, int):
        end.sent += sent
    return f"{sizes} {sent}"


def shutdown(rng, end, one, epoll, ends):
    how = rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])
    return f"{how} {tried(lambda: one.shutdown(how))}"


def close(rng, end, one, epoll, ends):
    end.sockets.remove(one)
    one.close()
    return len(end.sockets)


def names(rng, end, one, epoll, ends):
    peer = tried(one.getpeername)
    kind = one.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE), one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    # The client's port is another one each time.
    return f"{peer if isinstance(peer, str) else len(peer)} {one.getsockname()[1] == 7} {kind}"


def options(rng, end, one, epoll, ends):
    level, name = rng.choice([
        (socket.IPPROTO_TCP, socket.TCP_NODELAY), (socket.IPPROTO_TCP, socket.TCP_CORK), (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), (socket.IPPROTO_TCP, 99), (socket.SOL_SOCKET, socket.SO_PRIORITY),
    ])
    value = rng.choice([0, 1, 7])
    if name == socket.TCP_CORK and level == socket.IPPROTO_TCP:
        # What is held back differs in time, not in what it is.
        value = 0
    return f"{level} {name} {value} {tried(lambda: one.setsockopt(level, name, value))} {tried(lambda: one.getsockopt(level, name))}"


def events(rng, epoll, ends):
    most = rng.choice([1, 8, 8])
    places = {one.fileno(): f"{name}{n}" for name, end in ends.items() for n, one in enumerate(end.sockets)}
    found = tried(lambda: epoll.poll(0, most))
    if isinstance(found, str):
        return found
    if most == 1:
        # Which of several comes first is nobody's promise.
        return len(found)
    return sorted((places.get(fd, "closed"), named(bits)) for fd, bits in found)


def polled(rng, end, one, epoll, ends):
    poll = select.poll()
    for other in [one, *(end.any(rng) for end in ends.values() if end.sockets)]:
        poll.register(other, rng.choice([select.POLLIN, select.POLLOUT, select.POLLIN | select.POLLOUT | select.POLLRDHUP]))
    places = {one.fileno(): f"{name}{n}" for name, end in ends.items() for n, one in enumerate(end.sockets)}
    return sorted((places[fd], named(bits)) for fd, bits in poll.poll(0))


def selected(rng, end, one, epoll, ends):
    return [len(part) for part in select.select([one], [one], [one], 0)]


CALLS = [send, send, send, recv, recv, recv, recv_vectors, send_vectors, shutdown, close, dup, error, queued, names, options, control, control,
         control, polled, selected]

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((address, 7))
listener.listen(16)
for seed in range(first, first + programs):
    for line in program(seed, listener):
        print(line)
