"""Connects that shutdown(2) ends: NOBODY SERVER; what came of each, line by line. Nobody has the first address, and no port of the second
one is open but what this program opens there."""
import errno
import select
import socket
import sys
import threading

from differential_calls import tried

nobody, server = (sys.argv[1], 7), sys.argv[2]
HOW = {"rd": socket.SHUT_RD, "wr": socket.SHUT_WR, "rdwr": socket.SHUT_RDWR}
WATCHDOG = 60


def connects(client):
    """Also after an attempt that was ended."""
    client.settimeout(WATCHDOG)
    failed = tried(lambda: client.connect(listener.getsockname()))
    if failed:
        return failed
    end, _ = listener.accept()
    end.settimeout(WATCHDOG)
    client.sendall(b"request")
    end.sendall(end.recv(7, socket.MSG_WAITALL).upper())
    return client.recv(7, socket.MSG_WAITALL)


listener = socket.create_server((server, 0))
for name, how in HOW.items():
    client = socket.socket()
    came = []
    thread = threading.Thread(target=lambda: came.append(tried(lambda: client.connect(nobody))))
    thread.start()
    # Before it has begun there is nothing to end.
    while thread.is_alive():
        tried(lambda: client.shutdown(how))
        thread.join(0.001)
    print(name, "waits", came)

    client = socket.socket()
    client.setblocking(False)
    print(name, "begins", errno.errorcode[client.connect_ex(nobody)])
    print(name, "ends", tried(lambda: client.shutdown(how)), tried(lambda: client.shutdown(how)))
    polled = select.poll()
    polled.register(client, select.POLLOUT)
    print(name, "is told", [ready for _, ready in polled.poll(1000 * WATCHDOG)])
    print(name, "error", errno.errorcode.get(client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))
    print(name, "again", errno.errorcode[client.connect_ex(nobody)], tried(lambda: client.shutdown(how)), connects(client))
print("others", connects(socket.socket()))
