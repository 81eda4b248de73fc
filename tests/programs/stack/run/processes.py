"""An echo server that forks: HOW ADDRESS. It serves a connection, and says what its processes could do."""
import os
import socket
import sys

how, address = sys.argv[1:3]
server = socket.socket()
server.bind((address, 7))
server.listen(8)


def ready():
    open(os.environ["READY_FILE"], "w").close()


def serve(serves=None):
    connection, _ = server.accept()
    if serves:
        os.write(serves, b"!")
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


if how == "daemon":
    # Twice, as daemon(3)'s users do.
    for _ in range(2):
        if os.fork():
            os._exit(0)
        os.setsid() if os.getsid(0) != os.getpid() else None
    ready()
    serve()
elif how == "worker":
    # The child serves in its parent's place, which waits for it, and knows where it listens.
    served, serves = os.pipe()
    child = os.fork()
    if child == 0:
        ready()
        serve(serves)
        os._exit(0)
    os.read(served, 1)
    assert server.getsockname() == (address, 7)
    assert os.waitpid(child, 0)[1] == 0
    # And the next child, when the first is gone.
    child = os.fork()
    if child == 0:
        open(os.environ["READY_FILE"] + "-again", "w").close()
        serve()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
elif how == "save":
    # A child that does something else, while connections are open, and one that would serve one of them.
    ready()
    connection, _ = server.accept()
    connection.sendall(connection.recv(5))
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    child = os.fork()
    if child == 0:
        try:
            connection.sendall(b"from a child")
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(b"%5d" % status)
    connection.sendall(connection.recv(5))
    connection.close()
