"""A server that goes on when its instance ends: HOW (waits, threads, edges) ADDRESS PORT CONNECTIONS. Echoes once on each connection. Says what
accept failed with, and of each connection an option that was set on its listener."""
import errno
import os
import select
import socket
import sys
import threading

how, address, port, left = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def serve(connection):
    with connection:
        connection.setblocking(True)
        print(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), flush=True)
        connection.sendall(connection.recv(100))


def accepted(server):
    try:
        return server.accept()[0]
    except BlockingIOError:
        return None
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
        return None


def serve_all(server, left):
    while left and (connection := accepted(server)):
        try:
            serve(connection)
        except OSError as error:
            # It ended amid it.
            print(errno.errorcode[error.errno], flush=True)
        left -= 1
    return left


def serve_for_ever(server):
    while True:
        serve_all(server, left)


with socket.create_server((address, port)) as server:
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    waiter = select.epoll()
    if how == "edges":
        server.setblocking(False)
        waiter.register(server, select.EPOLLIN | select.EPOLLET)
    open(os.environ["READY_FILE"], "w").close()
    if how == "threads":
        for _ in range(left - 1):
            threading.Thread(target=serve_for_ever, args=(server,)).start()
        serve_for_ever(server)
    while left:
        if how == "edges":
            assert waiter.poll()[0][0] == server.fileno()
        left = serve_all(server, left)
