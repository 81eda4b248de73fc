"""A program whose sockets several engines have: OWN PEER BASE-PORT. The peer at port 9 says from where it is connected to, and whoever
connects to port 7 here is echoed until somebody says "end". Each line says what was seen to hold."""
import errno
import select
import socket
import sys
import threading

OWN, PEER, BASE = *sys.argv[1:3], int(sys.argv[3])


def connect(bound=None):
    one = socket.socket()
    if bound:
        one.bind(bound)
    one.connect((PEER, 9))
    seen = one.makefile().readline().strip()
    address, port = one.getsockname()
    assert seen == f"{address}:{port}", (seen, address, port)
    assert one.getpeername() == (PEER, 9)
    return one


def fails(wanted, call):
    try:
        call()
    except OSError as error:
        assert error.errno == wanted, error
        return
    raise AssertionError(f"{errno.errorcode[wanted]} was expected")


def listener(address, *options):
    one = socket.socket()
    for option in options:
        one.setsockopt(socket.SOL_SOCKET, option, 1)
    one.bind(address)
    one.listen(128)
    return one


kept = [connect() for _ in range(64)]
print("connected, each from a port of its own:", len({one.getsockname() for one in kept}), flush=True)

bound = [connect((OWN, BASE + n)) for n in range(32)]
bound += [connect(("0.0.0.0", BASE + 1000 + n)) for n in range(32)]
ports = {one.getsockname()[1] for one in bound}
assert ports == {*range(BASE, BASE + 32), *range(BASE + 1000, BASE + 1032)}, ports
print("connected from ports that they were bound to:", len(ports), flush=True)

listeners = [listener((OWN, 0), socket.SO_REUSEADDR) for _ in range(100)]
names = [one.getsockname() for one in listeners]
assert len({*names} | {one.getsockname() for one in kept + bound}) == 100 + 64 + 64
for one, name in zip(listeners, names):
    client = socket.create_connection(name)
    served, peer = one.accept()
    assert peer == client.getsockname() and served.getpeername() == peer
    served.sendall(b"here")
    served.close()
    assert client.recv(10) == b"here" and client.recv(10) == b""
    client.close()
print("listened at ports that were chosen:", len(names), flush=True)

for n in range(16):
    fails(errno.ECONNREFUSED, lambda: socket.create_connection((PEER, 1)))
    one = socket.socket()
    one.bind((OWN, BASE + 2000 + n))
    fails(errno.ECONNREFUSED, lambda: one.connect((PEER, 1)))
    one.close()
    again = socket.socket()
    again.bind((OWN, BASE + 2000 + n))
    again.close()
for n in range(16):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    one.bind((OWN, BASE + 2100 + n) if n % 2 else ("0.0.0.0", BASE + 2100 + n))
    fails(errno.ECONNREFUSED, lambda: one.connect((PEER, 1)))
    one.connect((PEER, 9))
    assert one.makefile().readline().strip() == f"{OWN}:{BASE + 2100 + n}"
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    bound.append(one)
print("refused, and connected from the same port", flush=True)

first, second = socket.socket(), socket.socket()
for one in first, second:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((OWN, BASE + 2200))
first.listen()
fails(errno.EADDRINUSE, second.listen)
first.close()
second.listen()
second.close()
print("listened where another one was bound", flush=True)

taken = names[0]
fails(errno.EADDRINUSE, lambda: socket.socket().bind(taken))
fails(errno.EADDRINUSE, lambda: socket.socket().bind((OWN, BASE)))
for one in listeners:
    one.close()
again = [listener(name, socket.SO_REUSEADDR) for name in names]
for one in again:
    one.close()
print("bound again", flush=True)

both = [listener((OWN, BASE + 3000), socket.SO_REUSEPORT) for _ in range(2)]
clients = [socket.create_connection((OWN, BASE + 3000)) for _ in range(32)]
accepted = []
while len(accepted) < len(clients):
    # One that nobody has for a minute is nobody's.
    ready, _, _ = select.select(both, [], [], 60)
    assert ready, (len(accepted), len(clients))
    accepted += [one.accept()[0] for one in ready]
for one in clients + accepted + both:
    one.close()
print("shared a port", flush=True)


def serve(connection):
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)
            if data == b"end":
                over.set()


def accept():
    while True:
        connection, _ = server.accept()
        threading.Thread(target=serve, args=[connection], daemon=True).start()


over = threading.Event()
server = listener(("0.0.0.0", 7))
server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
threading.Thread(target=accept, daemon=True).start()
print("serves", flush=True)
over.wait()
for one in kept + bound:
    one.close()
