"""Which ports may be bound at ADDRESS, by root and by nobody: a line each."""
import errno
import os
import socket
import sys

for user in 0, 65_534:
    if user:
        os.setresuid(user, user, user)
    for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
        for port in 90, 1_023, 1_024:
            end = socket.socket(type=kind)
            try:
                end.bind((sys.argv[1], port))
                print(user, kind.name, port, "bound")
            except OSError as error:
                print(user, kind.name, port, errno.errorcode[error.errno])
            end.close()
