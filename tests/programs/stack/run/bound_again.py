"""Closes a listener, and a socket that is only bound, and binds the port again at once: argv: address, port, how often."""
import socket
import sys

address, port, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for _ in range(rounds):
    listener = socket.socket()
    listener.bind((address, port))
    listener.listen(8)
    listener.close()
    bound = socket.socket()
    bound.bind((address, port))
    bound.close()
print("bound", rounds, "times")
