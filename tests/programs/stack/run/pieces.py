"""Answers in two pieces, each by a call of its own: HOW ADDRESS REQUESTS [FIFO]."""
import os
import socket
import struct
import sys

how, address, requests = sys.argv[1], sys.argv[2], int(sys.argv[3])

if how == "serves":
    server = socket.socket()
    server.bind((address, 7))
    server.listen(8)
    open(os.environ["READY_FILE"], "w").close()
    connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while request := connection.recv(100):
        connection.sendall(b"head")
        if request == b"stop":
            # No call of the library, until the client has what was sent.
            with open(sys.argv[4]) as fifo:
                assert fifo.read() == "got it"
        if request == b"more":
            connection.send(b"bo", socket.MSG_MORE)
            with open(sys.argv[4]) as fifo:
                assert fifo.read() == "got it"
            connection.sendall(b"dy")
            continue
        connection.sendall(b"body")
    connection.close()
    # The same, each on a connection that ends with it.
    for _ in range(requests):
        connection, _ = server.accept()
        connection.recv(100)
        connection.sendall(b"head")
        connection.sendall(b"body")
        connection.close()
else:
    connection = socket.create_connection((address, 7))

    def answer(request, pieces):
        connection.sendall(request)
        return connection.recv(pieces, socket.MSG_WAITALL)

    def segments(kind):
        # struct tcp_info of linux/tcp.h
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 160)
        return struct.unpack_from("I", info, {"segs_in": 140, "data_segs_in": 152}[kind])[0]

    for _ in range(requests):
        assert answer(b"next", 8) == b"headbody"
    print(segments("data_segs_in"))
    assert answer(b"stop", 4) == b"head"
    with open(sys.argv[4], "w") as fifo:
        fifo.write("got it")
    assert connection.recv(4, socket.MSG_WAITALL) == b"body"
    # What is to wait does not keep what was sent before.
    for _ in range(100):
        assert answer(b"next", 8) == b"headbody"
    # By itself, not with what the stack keeps for a fifth of a second.
    connection.sendall(b"more")
    assert connection.recv(100) == b"head"
    with open(sys.argv[4], "w") as fifo:
        fifo.write("got it")
    assert connection.recv(4, socket.MSG_WAITALL) == b"body"
    connection.close()
    on_short = 0
    for _ in range(requests):
        connection = socket.create_connection((address, 7))
        assert answer(b"next", 9) == b"headbody"
        on_short += segments("segs_in")
        connection.close()
    print(on_short)
