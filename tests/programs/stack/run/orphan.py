"""The instance goes away while this program waits: ADDRESS OF-THE-STACK OF-THE-KERNEL. Each call fails, and none hangs."""
import errno
import os
import select
import socket
import sys
import threading

own, kernel = sys.argv[1:3]
server = socket.socket()
server.bind((own, 7))
server.listen(8)
connection = socket.socket()
connection.connect((kernel, 9))
results = {}
watched = select.epoll()
watched.register(server, select.EPOLLIN)


def name(call):
    try:
        return repr(call())
    except OSError as error:
        return errno.errorcode[error.errno]


def waits(what, call):
    results[what] = name(call)


threads = [
    threading.Thread(target=waits, args=["receives", lambda: connection.recv(10)]),
    threading.Thread(target=waits, args=["accepts", server.accept]),
]
for thread in threads:
    thread.start()
open(os.environ["READY_FILE"], "w").close()
for thread in threads:
    thread.join()
results["sends"] = name(lambda: connection.send(b"x", socket.MSG_NOSIGNAL))
results["opens"] = name(lambda: socket.create_connection((kernel, 9)))
results["options"] = name(lambda: connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
# A server that goes on to wait has nothing to try for ever.
results["waits"] = name(lambda: watched.poll(0))
# The kernel's own go on.
with socket.create_server(("127.0.0.1", 0)) as other:
    results["kernel"] = name(lambda: socket.create_connection(other.getsockname()).getpeername()[0])
print(" ".join(f"{what} {result}" for what, result in results.items()))
