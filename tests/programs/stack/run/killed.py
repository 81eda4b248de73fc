"""Does everything at once until it is killed, all of its processes: ADDRESS PEER. The first line names them; then a byte for each thing done."""
import os
import select
import socket
import sys
import threading

address, peer = sys.argv[1:3]
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((address, 7))
listener.listen(64)
processes = [os.getpid()]
while len(processes) < 3 and (child := os.fork()):
    processes.append(child)
if len(processes) == 3:
    os.write(1, b"%d %d %d\n" % tuple(processes))


def done():
    os.write(1, b".")


def again(call):
    def repeats():
        while True:
            try:
                call()
            except OSError:
                # A port or a descriptor that there is not at the moment.
                pass
            done()

    threading.Thread(target=repeats).start()


def serves():
    """By events, and with a child that has all of it, too."""
    epoll = select.epoll()
    epoll.register(listener, select.EPOLLIN)
    listener.setblocking(False)
    served = {}
    while True:
        for number, _ in epoll.poll():
            if number == listener.fileno():
                try:
                    one = listener.accept()[0]
                except BlockingIOError:
                    continue
                epoll.register(one, select.EPOLLIN)
                served[one.fileno()] = one
            else:
                data = served[number].recv(65536)
                if data:
                    served[number].setblocking(True)
                    served[number].sendall(data)
                else:
                    served.pop(number).close()
            done()


def sends():
    with socket.create_connection((peer, 9)) as connection:
        connection.sendall(b"x" * 300_000)
        connection.recv(1)


def receives():
    with socket.create_connection((peer, 19)) as connection:
        left = 300_000
        while left > 0 and (data := connection.recv(min(left, 65536))):
            left -= len(data)
            done()


def connects():
    for port in (9, 18):
        with socket.socket() as connection:
            connection.setblocking(False)
            connection.connect_ex((peer, port))
            select.select([], [connection], [], 60)


def binds():
    with socket.socket() as one:
        one.bind((address, 0))
        done()


def waits_for_nobody():
    with socket.socket() as connection:
        connection.connect(("10.0.0.77", 9))


def forks():
    with socket.create_connection((peer, 9)) as connection:
        connection.sendall(b"parent")
        if (child := os.fork()) == 0:
            connection.sendall(b"child")
            os._exit(0)
        os.waitpid(child, 0)


def datagrams():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((address, 0))
        for _ in range(10):
            one.sendto(b"x" * 1000, (peer, 9))


for call in (serves, sends, receives, connects, binds, waits_for_nobody, forks, datagrams):
    again(call)
