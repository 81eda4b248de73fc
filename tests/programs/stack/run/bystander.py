"""Has a listener, a connection and a socket of datagrams at ADDRESS, which nobody else is to change: what they are at first, and whenever a
byte comes by the connection, is a line each; the byte comes back."""
import os
import socket
import sys

OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY), (socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.SOL_SOCKET, socket.SO_LINGER),
    (socket.IPPROTO_IP, socket.IP_TOS), (socket.SOL_SOCKET, socket.SO_ERROR), (socket.SOL_SOCKET, socket.SO_ACCEPTCONN),
]
address = sys.argv[1]
listener = socket.create_server((address, 8))
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind((address, 8))
open(os.environ["READY_FILE"], "w").close()
connection, _ = listener.accept()
for one in (listener, connection):
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
for one in (listener, connection, datagrams):
    one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16)


def shown(one):
    of = OPTIONS if one is not datagrams else OPTIONS[1:]
    peer = one.getpeername() if one is connection else None
    return one.getsockname(), peer, [one.getsockopt(*option) for option in of]


print(*map(shown, (listener, connection, datagrams)), flush=True)
while byte := connection.recv(1):
    print(*map(shown, (listener, connection, datagrams)), flush=True)
    datagrams.sendto(byte, connection.getpeername())
    connection.sendall(byte)
