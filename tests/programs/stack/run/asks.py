"""Sockets of each kind: connects to two ports, sends a datagram to two, listens on two on every address and accepts so many
connections: argv: peer, its four ports, its own two, how many."""
import os
import select
import socket
import sys

peer = sys.argv[1]
first, second, third, fourth, one, other, accepts = map(int, sys.argv[2:])
for port in (first, second):
    socket.create_connection((peer, port)).close()
for port in (third, fourth):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"?", (peer, port))
listeners = []
for port in (one, other):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(8)
    listeners.append(listener)
open(os.environ["READY_FILE"], "w").close()
while accepts:
    for listener in select.select(listeners, [], [])[0]:
        listener.accept()[0].close()
        accepts -= 1
