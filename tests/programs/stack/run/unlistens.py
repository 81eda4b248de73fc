"""A listener that is shut down, and listens again: ADDRESS TO OWN HOW; what came of it, line by line."""
import errno
import os
import select
import socket
import sys
import threading

address, to, own, processes = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "processes"
WATCHDOG = 60


def of(call):
    """Its result, or errno."""
    try:
        return call()
    except OSError as error:
        return errno.errorcode.get(error.errno, error)


def client():
    connection = socket.socket()
    connection.settimeout(WATCHDOG)
    return of(lambda: connection.connect((to, port))) or connection


def serves():
    there = client()
    here, _ = listener.accept()
    here.settimeout(WATCHDOG)
    there.sendall(b"request")
    here.sendall(here.recv(7, socket.MSG_WAITALL).upper())
    return there.recv(7, socket.MSG_WAITALL)


def waits():
    """In accept and in poll, of this process and of a child."""
    ends = []
    polled = select.poll()
    polled.register(listener, select.POLLIN)
    calls = [lambda: ends.append(of(listener.accept)), lambda: ends.append(len(polled.poll()))]
    threads = [threading.Thread(target=call) for call in calls]
    child = processes and os.fork()
    if processes and child == 0:
        os._exit(7 if of(listener.accept) == "EINVAL" else 1)
    for thread in threads:
        thread.start()
    listener.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join()
    if processes:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    return sorted(ends, key=str)


def accepts():
    return listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
# The kernel gives up one that it chose itself.
listener.bind((address, 7654))
port = listener.getsockname()[1]
print("before", of(lambda: listener.shutdown(socket.SHUT_RD)))
listener.listen(5)
print("listens", accepts(), serves())
queued = client()
select.select([listener], [], [])
print("shut", of(lambda: listener.shutdown(socket.SHUT_RD)), accepts(), listener.getsockname()[1] == port)
print("queued", of(lambda: queued.recv(1)))
print("refused", client(), of(listener.accept), of(lambda: listener.shutdown(socket.SHUT_RD)))
for _ in range(3):
    listener.listen(5)
    print("again", accepts(), serves())
    # As haproxy does to pause.
    print("write", of(lambda: listener.shutdown(socket.SHUT_WR)), accepts(), of(lambda: listener.listen(5)), serves())
    print("read", of(lambda: listener.shutdown(socket.SHUT_RD)), client())
listener.listen(5)
print("waits", waits(), client())
# What has listened may connect, from its port.
other = socket.create_server((own, 0))
print("connects", of(lambda: listener.connect(other.getsockname())), accepts())
end, peer = other.accept()
listener.sendall(b"request")
print("from", peer[1] == port, end.recv(7, socket.MSG_WAITALL), end.sendall(b"answer"), listener.recv(6, socket.MSG_WAITALL))
