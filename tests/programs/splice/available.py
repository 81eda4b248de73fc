"""available.py MS: questions and answers for so long; then one end sends until nothing fits, and the other asks FIONREAD
before each receive. Says how often it was told 0 with bytes unread, as JSON."""
import array
import fcntl
import select
import socket
import sys
import termios
import time


def ready(end):
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return poll.poll(0)


def available(end):
    answer = array.array("i", [-1])
    fcntl.ioctl(end, termios.FIONREAD, answer)
    return answer[0]


def take(end, size):
    while size:
        try:
            size -= len(end.recv(size))
        except BlockingIOError:
            pass


listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
client.setblocking(False)
server.setblocking(False)
until = time.monotonic() + int(sys.argv[1]) / 1000
rounds = 0
while time.monotonic() < until:
    for sender, receiver in ((client, server), (server, client)):
        sender.send(bytes(100))
        take(receiver, 100)
    rounds += 1
sent = 0
try:
    while True:
        sent += client.send(bytes(5000))
except BlockingIOError:
    pass
asked = wrong = 0
while sent:
    if ready(server):
        asked += 1
        wrong += available(server) <= 0
        sent -= len(server.recv(3000))
print(f'{{"rounds": {rounds}, "asked": {asked}, "wrong": {wrong}}}')
