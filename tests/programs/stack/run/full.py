"""Connections through the stack that are full both ways when their program ends: ADDRESS HOW."""
import os
import socket
import sys

address, how = sys.argv[1], sys.argv[2]
FULL = 1 << 26
FAMILY = socket.AF_INET6 if ":" in address else socket.AF_INET


def fill(connection):
    connection.setblocking(False)
    sent = 0
    while sent < FULL:
        try:
            sent += connection.send(b"x" * 65536)
        except BlockingIOError:
            return sent
    raise AssertionError("never full")


def pair():
    with socket.create_server((address, 0), family=FAMILY) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        return client, listener.accept()[0]


if how == "itself":
    one = socket.socket(FAMILY)
    one.bind((address, 0))
    one.connect(one.getsockname())
    fill(one)
elif how == "each other":
    for end in (ends := pair()):
        fill(end)
elif how == "one way":
    # The other end has sent all that it has, and it is unread.
    ends = pair()
    ends[1].sendall(b"unread")
    fill(ends[0])
elif how == "read":
    # Nothing is unread: what was sent arrives, whatever becomes of its program.
    client, server = pair()
    if os.fork() > 0:
        server.close()
        client.sendall(b"y" * (8 << 20))
        os._exit(0)
    client.close()
    server.settimeout(60)
    got = 0
    while part := server.recv(65536):
        got += len(part)
    assert got == 8 << 20, got
    print("all", flush=True)
os._exit(0)
