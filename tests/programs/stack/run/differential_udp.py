"""Random calls on datagram sockets at ADDRESS, whose peers are the kernel's at PEER; what each gave, a line each:
ADDRESS PEER FIRST_SEED PROGRAMS PATIENCE_MS [pairs]. The same lines on the kernel's stack and on another one, or they differ."""
import ctypes
import errno
import random
import select
import socket
import sys
import time

from differential_calls import control, dup, error, named, queued as queued_of_any, tried

address, peer, first, programs, patience = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]) / 1000
# Where a socket is an end of a pair of unix(7): what poll says of errors is another thing, and one that was shut both ways, or for reading, is over.
pairs = sys.argv[6:] == ["pairs"]
libc = ctypes.CDLL(None, use_errno=True)
family = socket.AF_INET6 if ":" in address else socket.AF_INET
anywhere = "::" if ":" in address else "0.0.0.0"
PORT, PEERS, CLOSED = 7000, (7001, 7002), 7999


class End:
    """A socket, maybe closed, with duplicates; and how many datagrams were made here, so that each is another one."""

    def __init__(self, one):
        self.sockets = [one]
        self.made = 0
        # Whose it is: an address has said so.
        self.decided = False
        # Errors may have come.
        self.refused = False


def settle():
    """The other side's processing, and what it answers."""
    time.sleep(patience)


def text(end, size):
    end.made += 1
    return bytes((end.made * 31 + n * 7) % 251 for n in range(size))


def shown(name):
    """Both stacks' addresses under the same name; ports that were chosen for a socket are not the same."""
    if not isinstance(name, tuple):
        return name
    host = {address: "HERE", peer: "THERE" if peer != address else "HERE", anywhere: "ANY"}.get(name[0], name[0])
    port = name[1] if name[1] in (0, PORT, CLOSED, *PEERS) else "chosen"
    return f"{'HOST' if host in ('HERE', 'THERE') else host} {port}"


def digest(data):
    return f"{len(data)}:{sum((n + 1) * byte for n, byte in enumerate(data)) % 65521}"


def program(seed):
    rng = random.Random(seed)
    server = socket.socket(family, socket.SOCK_DGRAM)
    server.setblocking(False)
    begin = rng.choice(["here", "here", "anywhere", "nowhere"])
    if begin != "nowhere":
        server.bind((address if begin == "here" else anywhere, PORT))
    clients = []
    for port in PEERS:
        client = socket.socket(family, socket.SOCK_DGRAM)
        client.bind((peer, port))
        client.setblocking(False)
        clients.append(client)
    end = End(server)
    end.decided = begin != "nowhere"
    # It gets into its sets once more when it is decided: another edge.
    end.refused = begin == "nowhere"
    epoll = select.epoll()
    lines = [f"{seed} {begin}"]
    for _ in range(rng.randrange(6, 30)):
        if not end.sockets:
            break
        one = rng.choice(end.sockets)
        call = rng.choice(CALLS)
        result = call(rng, end, one, epoll, clients)
        lines.append(f"{seed} {call.__name__}: {result}")
        settle()
        if rng.random() < 0.7:
            lines.append(f"{seed} events: {events(rng, end, epoll)}")
    for one in end.sockets + clients:
        one.close()
    epoll.close()
    return lines


def arrive(rng, end, one, epoll, clients):
    """A peer sends to where the socket is."""
    if not end.decided:
        return "left out"
    port = one.getsockname()[1]
    sizes = [rng.choice([0, 1, 10, 1000, 3000]) for _ in range(rng.choice([1, 1, 3]))]
    sender = rng.choice(clients)
    return sizes, [tried(lambda: sender.sendto(text(end, size), (address, port or PORT))) for size in sizes]


def heard(rng, end, one, epoll, clients):
    """What has come to the peers."""
    found = []
    for client in clients:
        while isinstance(got := tried(lambda: client.recvfrom(70000)), tuple):
            found.append((digest(got[0]), shown(got[1])))
    return found


def send(rng, end, one, epoll, clients):
    size = rng.choice([0, 1, 10, 1000, 3000, 65508, 70000])
    flags = rng.choice([0, 0, socket.MSG_NOSIGNAL, socket.MSG_DONTWAIT])
    return f"{size} {tried(lambda: one.send(text(end, size), flags))}"


def send_to(rng, end, one, epoll, clients):
    size, port = rng.choice([0, 1, 1000, 3000, 65508]), rng.choice([*PEERS, *PEERS, CLOSED, 0])
    sent = tried(lambda: one.sendto(text(end, size), (peer, port)))
    end.decided |= isinstance(sent, int)
    return f"{size} {port} {sent}"


def send_vectors(rng, end, one, epoll, clients):
    parts = [text(end, rng.choice([0, 1, 100, 2000])) for _ in range(3)]
    to = rng.choice([(), ([], 0, (peer, PEERS[0]))])
    sent = tried(lambda: one.sendmsg(parts, *to))
    end.decided |= isinstance(sent, int)
    return f"{[len(part) for part in parts]} {bool(to)} {sent}"


def recv(rng, end, one, epoll, clients):
    size = rng.choice([0, 1, 10, 1000, 70000])
    flags = rng.choice([0, 0, 0, socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL])
    got = tried(lambda: one.recvfrom(size, flags))
    if isinstance(got, tuple):
        got = f"{digest(got[0])} {shown(got[1])}"
    return f"{size} {flags} {got}"


def recv_vectors(rng, end, one, epoll, clients):
    parts = [bytearray(rng.choice([0, 1, 100, 2000])) for _ in range(3)]
    flags = rng.choice([0, 0, socket.MSG_PEEK, socket.MSG_TRUNC, socket.MSG_PEEK | socket.MSG_TRUNC])
    got = tried(lambda: one.recvmsg_into(parts, 200, flags))
    if isinstance(got, tuple):
        count, control, told, name = got
        got = f"{count} {digest(b''.join(parts)[:count])} {len(control)} {told} {shown(name)}"
    return f"{[len(part) for part in parts]} {flags} {got}"


def read(rng, end, one, epoll, clients):
    size = rng.choice([0, 5, 5000])
    into = ctypes.create_string_buffer(max(size, 1))
    count = libc.read(one.fileno(), into, size)
    return f"{size} {digest(into.raw[:count]) if count >= 0 else errno.errorcode[ctypes.get_errno()]}"


def write(rng, end, one, epoll, clients):
    size = rng.choice([0, 5, 5000])
    count = libc.write(one.fileno(), text(end, size), size)
    return f"{size} {count if count >= 0 else errno.errorcode[ctypes.get_errno()]}"


def connect(rng, end, one, epoll, clients):
    port = rng.choice([*PEERS, *PEERS, CLOSED])
    done = tried(lambda: one.connect((peer, port)))
    end.decided |= done is None
    end.refused |= port == CLOSED
    return f"{port} {done}"


def disconnect(rng, end, one, epoll, clients):
    nobody = bytes(28)
    done = libc.connect(one.fileno(), nobody, len(nobody))
    return done if done == 0 else errno.errorcode[ctypes.get_errno()]


def bind(rng, end, one, epoll, clients):
    return tried(lambda: one.bind((rng.choice([address, anywhere]), rng.choice([PORT, 0]))))


def shutdown(rng, end, one, epoll, clients):
    # Not of a socket that no address has said whose it is.
    if one.getsockname()[1] == 0:
        return "left out"
    how = rng.choice([socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR])
    if pairs:
        how = socket.SHUT_WR
    return f"{how} {tried(lambda: one.shutdown(how))}"


def close(rng, end, one, epoll, clients):
    if len(end.sockets) < 2 and rng.random() < 0.7:
        return "left out"
    end.sockets.remove(one)
    one.close()
    return len(end.sockets)


def names(rng, end, one, epoll, clients):
    kinds = [one.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_TYPE, socket.SO_ACCEPTCONN, socket.SO_PROTOCOL, socket.SO_DOMAIN)]
    return f"{shown(tried(one.getsockname))} {shown(tried(one.getpeername))} {kinds}"


def options(rng, end, one, epoll, clients):
    level, name = rng.choice([
        (socket.SOL_SOCKET, socket.SO_REUSEADDR), (socket.SOL_SOCKET, socket.SO_BROADCAST),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.SOL_SOCKET, socket.SO_PRIORITY), (socket.IPPROTO_TCP, socket.TCP_NODELAY),
        (socket.IPPROTO_IP, socket.IP_TOS), (socket.IPPROTO_IP, 10), (socket.SOL_SOCKET, 9999), (socket.SOL_SOCKET, socket.SO_RCVLOWAT),
    ])
    value = rng.choice([0, 1, 3])
    return f"{level} {name} {value} {tried(lambda: one.setsockopt(level, name, value))} {tried(lambda: one.getsockopt(level, name))}"


def queued(rng, end, one, epoll, clients):
    # "FIONREAD is 0 while one is the next to be received"
    return "left out" if pairs and end.refused else queued_of_any(rng, end, one, epoll, clients)


def listens(rng, end, one, epoll, clients):
    return f"{tried(lambda: one.listen(1))} {tried(one.accept)}"


def events(rng, end, epoll):
    most = rng.choice([1, 8, 8])
    if pairs and end.refused:
        return "left out"
    places = {one.fileno(): n for n, one in enumerate(end.sockets)}
    found = tried(lambda: epoll.poll(0, most))
    if isinstance(found, str):
        return found
    if most == 1:
        # Which of several comes first is nobody's promise.
        return len(found)
    return sorted((places.get(fd, -1), named(bits)) for fd, bits in found)


def polled(rng, end, one, epoll, clients):
    poll = select.poll()
    for other in [one, rng.choice(end.sockets)]:
        poll.register(other, rng.choice([select.POLLIN, select.POLLOUT, select.POLLIN | select.POLLOUT | select.POLLRDHUP]))
    places = {one.fileno(): n for n, one in enumerate(end.sockets)}
    if pairs and end.refused:
        return "left out"
    return sorted((places[fd], named(bits)) for fd, bits in poll.poll(0))


def selected(rng, end, one, epoll, clients):
    if pairs and end.refused:
        return "left out"
    return [len(part) for part in select.select([one], [one], [one], 0)]


CALLS = [arrive, arrive, arrive, heard, heard, send, send, send_to, send_to, send_vectors, recv, recv, recv, recv_vectors, read, write, connect,
         connect, disconnect, bind, shutdown, close, dup, error, error, queued, names, names, options, listens, control, control, control, polled,
         selected]

for seed in range(first, first + programs):
    for line in program(seed):
        print(line)
