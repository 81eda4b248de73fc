"""Has connections of all kinds when it is killed: ADDRESS OF-ITSELF OF-THE-KERNEL. Four processes."""
import os
import socket
import sys
import threading

own, kernel = sys.argv[1:3]
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((own, 7))
server.listen(64)
for _ in range(3):
    if os.fork() == 0:
        break


def serve(connection):
    while data := connection.recv(4096):
        connection.sendall(data)


def asks():
    while True:
        with socket.socket() as connection:
            connection.connect((kernel, 9))
            connection.sendall(b"x" * 100_000)
            connection.recv(10)


threading.Thread(target=asks, daemon=True).start()
os.write(1, b"%d\n" % os.getpid())
while True:
    connection, _ = server.accept()
    threading.Thread(target=serve, args=[connection], daemon=True).start()
