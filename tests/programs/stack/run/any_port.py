"""Listens on every address at ports that it does not name, while there are connections that are over: ADDRESS CONNECTIONS LISTENERS."""
import errno
import socket
import sys

address, connections, listeners = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
server = socket.create_server((address, 0), backlog=8)
for _ in range(connections):
    client = socket.create_connection(server.getsockname())
    end, _ = server.accept()
    # The client's port is in TIME-WAIT.
    client.close()
    end.recv(1)
    end.close()
refused = 0
for _ in range(listeners):
    any = socket.socket()
    any.bind(("0.0.0.0", 0))
    try:
        any.listen()
    except OSError as error:
        assert error.errno == errno.EADDRINUSE, error
        refused += 1
    any.close()
print("refused", refused)
