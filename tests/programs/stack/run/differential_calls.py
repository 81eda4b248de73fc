"""What random programs of both kinds of socket do: calls that are the same for each, and how results are written."""
import errno
import fcntl
import select
import socket
import struct
import termios

NAMES = [(select.EPOLLIN, "IN"), (select.EPOLLOUT, "OUT"), (select.EPOLLRDHUP, "RDHUP"), (select.EPOLLHUP, "HUP"), (select.EPOLLERR, "ERR")]


def named(bits):
    return "|".join(name for bit, name in NAMES if bits & bit) or "0"


def tried(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)
    except ValueError as error:
        return f"ValueError {error}"


def dup(rng, end, one, epoll, others):
    if len(end.sockets) < 3:
        end.sockets.append(one.dup())
    return len(end.sockets)


def error(rng, end, one, epoll, others):
    return tried(lambda: one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))


def queued(rng, end, one, epoll, others):
    into = bytearray(4)
    return tried(lambda: fcntl.ioctl(one, termios.FIONREAD, into) and None) or struct.unpack("i", into)


def control(rng, end, one, epoll, others, without_edges_of=0):
    bits = rng.choice([select.EPOLLIN, select.EPOLLOUT, select.EPOLLIN | select.EPOLLOUT, select.EPOLLIN | select.EPOLLRDHUP, 0])
    bits |= rng.choice([0, 0, select.EPOLLET, select.EPOLLONESHOT, select.EPOLLET | select.EPOLLONESHOT])
    if bits & select.EPOLLET:
        bits &= ~without_edges_of
    how = rng.choice(["register", "register", "modify", "unregister"])
    arguments = (one,) if how == "unregister" else (one, bits)
    return f"{how} {bits & 0xffffffff:x} {tried(lambda: getattr(epoll, how)(*arguments))}"
