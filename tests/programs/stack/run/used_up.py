"""Calls that need no descriptor of the kernel's, where there is none left: ADDRESS; what came of each, line by line."""
import errno
import os
import resource
import socket
import sys

address = sys.argv[1]
# Those of the standard library open files when they are first used.
name_of = errno.errorcode.get


def of(call):
    try:
        return call()
    except OSError as error:
        return name_of(error.errno)


def use_up():
    used = []
    while True:
        try:
            used.append(os.dup(0))
        except OSError as error:
            assert error.errno == errno.EMFILE, error
            return used


def tries(listener, sockets, datagrams):
    there = listener.getsockname()
    print("connect", of(lambda: sockets[4].connect(there)))
    print("bind", of(lambda: sockets[0].bind((address, 0))), of(lambda: sockets[0].listen()))
    print("bound, connect", of(lambda: sockets[1].bind((address, 0))), of(lambda: sockets[1].connect(there)))
    print("everywhere", of(lambda: sockets[2].bind(("", 0))), of(lambda: sockets[2].listen()))
    print("datagrams", of(lambda: datagrams[0].bind((address, 0))), of(lambda: datagrams[1].bind(("", 0))))
    print("sent", of(lambda: datagrams[2].connect(datagrams[0].getsockname())), of(lambda: datagrams[2].send(b"hello")), of(lambda: datagrams[0].recv(9)))
    print("accept", of(listener.accept), flush=True)


def made():
    return [socket.socket() for _ in range(5)], [socket.socket(type=socket.SOCK_DGRAM) for _ in range(3)]


resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
# Its first call of the stack's is one of these.
listener, (sockets, datagrams) = socket.socket(), made()
used = use_up()
print("listens", of(lambda: listener.bind((address, 0))), of(listener.listen))
tries(listener, sockets, datagrams)
os.close(used.pop())
one, _ = listener.accept()
print("with one", of(listener.accept))
one.close()
for fd in used:
    os.close(fd)
del sockets, datagrams
(sockets, datagrams), used = made(), use_up()
sys.stdout.flush()
child = os.fork()
if child == 0:
    tries(listener, sockets, datagrams)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
