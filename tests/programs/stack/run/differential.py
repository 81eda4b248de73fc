"""Random socket calls on both ends of a connection whose serving end is at ADDRESS; what each gave, a line each:
ADDRESS FIRST_SEED PROGRAMS PATIENCE_MS [pairs] [shared|worker]. The same lines on the kernel's stack and on another one, or they differ.
shared: the serving end is two processes', worker: each program is a child's."""
import json
import os
import random
import select
import socket
import sys
import time

import differential_calls
from differential_calls import dup, error, named, queued, tried

address, first, programs, patience = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) / 1000
# Where the serving end is one of a pair of unix(7): what is left out for it is in KNOWN_ISSUES.md (`stack run --mode pipeline`).
pairs = "pairs" in sys.argv[5:]
shared, worker = "shared" in sys.argv[5:], "worker" in sys.argv[5:]


class End:
    """A connection, maybe closed, with duplicates, and what was received of a pattern that both ends send."""

    def __init__(self, connection):
        self.sockets = [connection]
        self.sent = self.received = 0
        # Nothing of it follows.
        self.ended = False
        # Nothing of either end.
        self.over = False
        # By edge, or in one shot.
        self.is_told_once = False

    def any(self, random):
        return random.choice(self.sockets)


def pattern(at, count):
    return bytes((at + n) * 7 % 251 for n in range(count))


def is_served(end, ends):
    return end is ends["server"]


def is_over(ends):
    """By two ends or by a reset, which what comes too late for a client is answered with."""
    server, client = ends["server"], ends["client"]
    return client.ended and (server.ended or server.sent != client.received)


def settle():
    """The other side's processing, and what it answers."""
    time.sleep(patience)


class Other:
    """Another process that has the serving end, too, with a set of its own: it does one call at a time."""

    def __init__(self, ends):
        (requests, self.requests), (self.answers, answers) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.requests)
            ends["client"].sockets.pop().close()
            self.serve(ends, open(requests), open(answers, "w"))
        os.close(requests)
        os.close(answers)
        self.answers = open(self.answers)

    def serve(self, ends, requests, answers):
        end, epoll = ends["server"], select.epoll()
        for line in requests:
            seed, call, end.sent, end.received, end.over = json.loads(line)
            rng = random.Random(seed)
            result = CALLS[call](rng, end, end.any(rng), epoll, ends) if end.sockets else "closed"
            json.dump([result, end.sent, end.received, end.ended, len(end.sockets)], answers)
            answers.write("\n")
            answers.flush()
        os._exit(0)

    def does(self, rng, call, end):
        text = json.dumps([rng.random(), CALLS.index(call), end.sent, end.received, end.over])
        os.write(self.requests, text.encode() + b"\n")
        result, end.sent, end.received, ended, self.left = json.loads(self.answers.readline())
        end.ended |= ended
        return result

    left = 1

    def ends(self):
        os.close(self.requests)
        self.answers.close()
        os.waitpid(self.pid, 0)


def program(seed, listener):
    rng = random.Random(seed)
    client = socket.socket()
    client.connect((address, 7))
    server, _ = listener.accept()
    server.setblocking(False)
    client.setblocking(False)
    settle()
    ends = {"server": End(server), "client": End(client)}
    other = Other(ends) if shared else None
    epoll = select.epoll()
    lines = []
    for _ in range(rng.randrange(4, 24)):
        name = rng.choice(["server", "server", "client"])
        end = ends[name]
        call = rng.choice(CALLS)
        ends["server"].over = is_over(ends)
        if pairs and shared and end.over and call in (recv, recv_vectors, send, send_vectors, error):
            # Each process that has the socket is told of the reset.
            continue
        if other and name == "server" and rng.random() < 0.5:
            name = "other"
            result = other.does(rng, call, end)
        elif not end.sockets:
            continue
        else:
            result = call(rng, end, end.any(rng), epoll, ends)
        end.ended |= not end.sockets and not (end is ends["server"] and other and other.left)
        lines.append(f"{seed} {name} {call.__name__}: {result}")
        settle()
        if name == "server" and rng.random() < 0.7:
            lines.append(f"{seed} events: {events(rng, epoll, ends)}")
    if other:
        other.ends()
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
    if pairs and not any(parts):
        # An end, it is thought.
        return "left out"
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
    if pairs and is_served(end, ends):
        # "Bytes that come after shutdown(SHUT_RD) are discarded"
        how = socket.SHUT_WR
    if pairs and end.over:
        return "left out"
    done = tried(lambda: one.shutdown(how))
    end.ended |= how != socket.SHUT_RD and done is None
    return f"{how} {done}"


def close(rng, end, one, epoll, ends):
    if pairs and end.ended and is_served(end, ends):
        # With unread bytes that is a reset of the kernel's alone.
        return "left out"
    end.sockets.remove(one)
    one.close()
    return len(end.sockets)


def names(rng, end, one, epoll, ends):
    # Of a pair there is a name, and nothing to shut that is none, until it is closed.
    peer = "left out" if pairs and end.over else tried(one.getpeername)
    kind = one.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE), one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    # The client's port is another one each time.
    return f"{peer if isinstance(peer, str) else len(peer)} {one.getsockname()[1] == 7} {kind}"


def options(rng, end, one, epoll, ends):
    level, name = rng.choice([
        (socket.IPPROTO_TCP, socket.TCP_NODELAY), (socket.IPPROTO_TCP, socket.TCP_CORK), (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), (socket.IPPROTO_TCP, 99), (socket.SOL_SOCKET, socket.SO_PRIORITY),
    ])
    value = rng.choice([0, 1, 7])
    if pairs and end.over:
        # "Once both directions have ended, getsockopt of TCP and IP fails with ENOTCONN, setsockopt changes nothing"
        return "left out"
    if name == socket.TCP_CORK and level == socket.IPPROTO_TCP:
        # What is held back differs in time, not in what it is.
        value = 0
    return f"{level} {name} {value} {tried(lambda: one.setsockopt(level, name, value))} {tried(lambda: one.getsockopt(level, name))}"


def control(rng, end, one, epoll, ends):
    # Whatever leaves a pair is an edge of it.
    without = select.EPOLLOUT if pairs and is_served(end, ends) else 0
    done = differential_calls.control(rng, end, one, epoll, ends, without_edges_of=without)
    how, bits, error = done.split(maxsplit=2)
    if error == "None" and how != "unregister":
        end.is_told_once |= int(bits, 16) & (select.EPOLLET | select.EPOLLONESHOT) != 0
    return done


def events(rng, epoll, ends):
    most = rng.choice([1, 8, 8])
    if any(end.is_told_once for end in ends.values()):
        # What is told first is not told again.
        most = 8
    places = {one.fileno(): f"{name}{n}" for name, end in ends.items() for n, one in enumerate(end.sockets)}
    found = tried(lambda: epoll.poll(0, most))
    if isinstance(found, str):
        return found
    if most == 1:
        # Which of several comes first is nobody's promise.
        return len(found)
    return sorted((places.get(fd, "closed"), told(places.get(fd, "server"), bits)) for fd, bits in found)


def told(place, bits):
    # "After a reset poll and epoll report IN and HUP, and no ERR"
    return named(bits & ~select.EPOLLERR if pairs and place.startswith("server") else bits)


def polled(rng, end, one, epoll, ends):
    poll = select.poll()
    for other in [one, *(end.any(rng) for end in ends.values() if end.sockets)]:
        poll.register(other, rng.choice([select.POLLIN, select.POLLOUT, select.POLLIN | select.POLLOUT | select.POLLRDHUP]))
    places = {one.fileno(): f"{name}{n}" for name, end in ends.items() for n, one in enumerate(end.sockets)}
    return sorted((places[fd], told(places[fd], bits)) for fd, bits in poll.poll(0))


def selected(rng, end, one, epoll, ends):
    return [len(part) for part in select.select([one], [one], [one], 0)]


CALLS = [send, send, send, recv, recv, recv, recv_vectors, send_vectors, shutdown, close, dup, error, queued, names, options, control, control,
         control, polled, selected]

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((address, 7))
listener.listen(16)
for seed in range(first, first + programs):
    if worker and (child := os.fork()):
        assert os.waitpid(child, 0)[1] == 0
        continue
    # Whoever uses it next has the stack.
    select.select([listener], [], [], 0)
    for line in program(seed, listener):
        print(line)
    if worker:
        sys.stdout.flush()
        os._exit(0)
