"""A client that goes on when its instance ends: ADDRESS PORT. A line for each answer; what fails is asked anew."""
import os
import socket
import sys

peer = sys.argv[1], int(sys.argv[2])
open(os.environ["READY_FILE"], "w").close()
while True:
    try:
        with socket.create_connection(peer, timeout=2) as connection:
            connection.sendall(b"hello")
            assert connection.recv(100) == b"hello"
    except (AssertionError, OSError):
        continue
    print(flush=True)
