"""A socket of datagrams at ADDRESS that three processes have after one another: the first's child, a child of it, and that one again."""
import os
import socket
import sys

server = socket.socket(type=socket.SOCK_DGRAM)
server.bind((sys.argv[1], 7))


def answer(who):
    data, peer = server.recvfrom(100)
    server.sendto(who + data, peer)


if os.fork():
    # As daemons do.
    os._exit(0)
open(os.environ["READY_FILE"], "w").close()
answer(b"first ")
child = os.fork()
if child == 0:
    answer(b"second ")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
answer(b"third ")
