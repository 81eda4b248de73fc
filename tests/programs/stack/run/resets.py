"""Ends that are resets, connections that are refused, and free ports, of sockets at ADDRESS that talk to each other, as Linux has them."""
import errno
import select
import socket
import struct
import sys

address = sys.argv[1]
server = socket.create_server((address, 7))


def name(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]


def pair():
    client = socket.create_connection((address, 7))
    return client, server.accept()[0]


def resets(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def read(client):
    return [name(lambda: client.recv(100)) for _ in range(3)]


whole = [b"answer", "ECONNRESET", b""]
for _ in range(20):
    # It closes with bytes that it has not read.
    client, served = pair()
    client.sendall(b"request")
    assert served.recv(1) == b"r"
    served.sendall(b"answer")
    served.close()
    found = read(client)
    assert found == whole, f"unread: {found}"

    client, served = pair()
    served.sendall(b"answer")
    resets(served)
    found = read(client)
    assert found == whole, f"sent before: {found}"

    # The reset is there before the bytes are read.
    client, served = pair()
    served.sendall(b"answer")
    assert client.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL) == b"answer"
    resets(served)
    watched = select.poll()
    watched.register(client, 0)
    assert watched.poll(60_000), "no end"
    found = read(client)
    assert found == whole, f"read late: {found}"

    # Behind its own end.
    client, served = pair()
    served.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""
    client.sendall(b"request")
    select.select([served], [], [], 60)
    served.close()
    watched = select.poll()
    watched.register(client, 0)
    assert watched.poll(60_000), "no reset"
    client.close()

    with socket.socket() as again:
        refused = [name(lambda: again.connect((address, 9))) for _ in range(3)]
        assert refused == ["ECONNREFUSED"] * 3, refused
        again.connect((address, 7))
        assert name(lambda: again.connect((address, 7))) == "EISCONN"
        server.accept()[0].close()
    with socket.socket() as again:
        again.setblocking(False)
        begun = name(lambda: again.connect((address, 9)))
        assert begun == "EINPROGRESS", begun
        select.select([], [again], [], 60)
        refused = name(lambda: again.connect((address, 9)))
        assert refused == "ECONNREFUSED", refused
    with socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.settimeout(60)
        datagrams.connect((address, 9))
        datagrams.send(b"x")
        refused = name(lambda: datagrams.recv(1))
        assert refused == "ECONNREFUSED", refused


def free():
    with socket.socket() as one:
        one.bind((address, 0))
        return one.getsockname()[1]


ports = {free() for _ in range(20)}
assert len(ports) > 15, ports
