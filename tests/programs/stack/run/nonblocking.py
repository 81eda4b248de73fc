"""connect that does not wait: ADDRESS-OF-A-SERVER ADDRESS-OF-NOBODY PORT. What poll says before it is there, and after; a line each."""
import errno
import select
import socket
import sys

server, nobody = sys.argv[1:3]


def polled(end, most_ms):
    poll = select.poll()
    poll.register(end, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    return [f"{events:x}" for _, events in poll.poll(most_ms)]


def begin(to, port):
    end = socket.socket()
    end.setblocking(False)
    epoll = select.epoll()
    epoll.register(end, select.EPOLLOUT | select.EPOLLET)
    return end, epoll, errno.errorcode.get(end.connect_ex((to, port)), "done")


def tried(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]


# In a cable's way nobody answers for a while.
end, epoll, begun = begin(nobody, 9)
print("nobody", begun, polled(end, 100), tried(lambda: end.send(b"early")), tried(lambda: end.recv(10)), tried(end.getpeername))
print("again", errno.errorcode[end.connect_ex((nobody, 9))])
end.close()
# A port at which nobody listens.
end, epoll, begun = begin(server, 9)
refused = polled(end, 20_000)
# On loopback the kernel may know at once.
error = end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
known = errno.errorcode[error] if begun == "EINPROGRESS" else begun
print("refused", known, [int(events, 16) & 0x14 for events in refused], end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
end.close()
# The same socket, another time, once somebody listens.
end = socket.socket()
print("in vain", tried(lambda: end.connect((server, 9))))
end.connect((server, int(sys.argv[3])))
end.sendall(b"twice")
print("discards", len(end.recv(2, socket.MSG_TRUNC)), end.recv(10))
end.close()
# The same in a set: it is still in it.
end, epoll, begun = begin(server, 9)
end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if polled(end, 20_000) else None
end.connect_ex((server, int(sys.argv[3])))
polled(end, 20_000)
print("in its set", [events & select.EPOLLOUT for fd, events in epoll.poll(20) if fd == end.fileno()])
end.close()


port = int(sys.argv[3])
end, epoll, begun = begin(server, port)
found = polled(end, 20_000)
edges = [f"{events:x}" for fd, events in epoll.poll(20) if fd == end.fileno()]
print("connected", [events for events in found if int(events, 16) & 4] != [], end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), end.getpeername() == (server, port))
print("edge", edges != [], epoll.poll(0))
print("again", end.connect_ex((server, port)), errno.errorcode[end.connect_ex((server, port))])
print("sent", end.send(b"word"))
end.setblocking(True)
print("back", end.recv(10), end.recv(10))
