"""Answers one request at ADDRESS with as many BYTES, and ends by quick_exit(3)."""
import ctypes
import os
import socket
import sys

server = socket.create_server((sys.argv[1], 7))
open(os.environ["READY_FILE"], "w").close()
connection, _ = server.accept()
connection.recv(100)
connection.sendall(bytes(int(sys.argv[2])))
ctypes.CDLL(None).quick_exit(0)
