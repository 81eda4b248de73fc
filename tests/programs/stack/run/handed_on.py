"""A server whose sockets go from process to process: HOW ADDRESS [PROGRAM]. Each connection is echoed by who got it."""
import array
import os
import select
import socket
import subprocess
import sys

how, address = sys.argv[1:3]


def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def listen():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, 7))
    server.listen(8)
    return server


def ready():
    open(os.environ["READY_FILE"], "w").close()


if how == "serve-listener":
    # Executed with a listener: what it is, it is told by its calls.
    server = socket.socket(fileno=int(address))
    assert server.family == socket.AF_INET and server.type == socket.SOCK_STREAM
    assert server.getsockname() == (sys.argv[3], 7), server.getsockname()
    assert server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    connection, peer = server.accept()
    assert connection.getpeername() == peer
    echo(connection)
elif how == "serve-connection":
    connection = socket.socket(fileno=int(address))
    assert connection.getsockname() == (sys.argv[3], 7)
    assert connection.getpeername()[1] > 0
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    echo(connection)
elif how == "forks":
    server = listen()
    ready()
    for _ in range(4):
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            echo(connection)
            os._exit(0)
        connection.close()
    for _ in range(4):
        assert os.wait()[1] == 0
elif how == "prefork":
    # Each of the workers accepts.
    server = listen()
    for _ in range(3):
        if os.fork() == 0:
            while True:
                connection, _ = server.accept()
                last = connection.recv(1, socket.MSG_PEEK) == b"."
                echo(connection)
                if last:
                    os._exit(0)
    server.close()
    ready()
    for _ in range(3):
        assert os.wait()[1] == 0
elif how == "gives":
    # All that it has goes to a program that was started apart, with a connection that nobody has accepted yet.
    server = listen()
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((address, 7))
    door = socket.socket(socket.AF_UNIX)
    door.bind(sys.argv[3])
    door.listen()
    ready()
    connection, _ = server.accept()
    assert connection.recv(3) == b"one"
    connection.sendall(b"1")
    select.select([server], [], [])
    taker, _ = door.accept()
    rights = array.array("i", [one.fileno() for one in (server, connection, datagrams)])
    taker.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    assert taker.recv(1) == b""
elif how == "takes":
    giver = socket.socket(socket.AF_UNIX)
    giver.connect(sys.argv[3])
    _, ((_, _, fds),), _, _ = giver.recvmsg(1, 64)
    server, connection, datagrams = [socket.socket(fileno=fd) for fd in array.array("i", fds)]
    assert server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    assert [one.getsockname() for one in (server, connection, datagrams)] == [(address, 7)] * 3
    giver.close()

    def is_whole(one):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        # ESTABLISHED, or CLOSE-WAIT.
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[0] in (1, 8)
        return one.getpeername()

    is_whole(connection)
    connection.sendall(b"two")
    echo(connection)
    for _ in range(2):
        connection, peer = server.accept()
        assert is_whole(connection) == peer
        echo(connection)
    data, peer = datagrams.recvfrom(100)
    assert datagrams.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_DGRAM
    datagrams.sendto(data, peer)
elif how == "executes":
    server = listen()
    server.set_inheritable(True)
    words = [sys.executable, "-B", __file__]
    fd = server.fileno()
    first = subprocess.Popen([*words, "serve-listener", str(fd), address], pass_fds=[fd])
    ready()
    assert first.wait() == 0
    connection, _ = server.accept()
    fd = connection.fileno()
    second = subprocess.Popen([*words, "serve-connection", str(fd), address], pass_fds=[fd])
    connection.close()
    assert second.wait() == 0
elif how == "inetd":
    # A program that the library is not in: its input and output.
    server = listen()
    ready()
    connection, _ = server.accept()
    child = subprocess.Popen([sys.argv[3]], stdin=connection, stdout=connection)
    connection.close()
    assert child.wait() == 0
elif how == "passes":
    # To a process that was there before.
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        for _ in range(2):
            data, control, _, _ = there.recvmsg(1, 64)
            (_, _, fds), = control
            connection = socket.socket(fileno=array.array("i", fds)[0])
            assert connection.getsockname() == (address, 7)
            echo(connection)
        os._exit(0)
    there.close()
    server = listen()
    ready()
    for _ in range(2):
        connection, _ = server.accept()
        rights = array.array("i", [connection.fileno()])
        here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        connection.close()
    assert os.waitpid(child, 0)[1] == 0
