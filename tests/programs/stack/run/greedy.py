"""Takes sockets of the stack until there are no more, and keeps them: ADDRESS."""
import errno
import os
import socket
import sys

kept = []
try:
    while True:
        kept.append(socket.socket())
        kept[-1].bind((sys.argv[1], 0))
except OSError as error:
    print(errno.errorcode[error.errno], len(kept), flush=True)
open(os.environ["READY_FILE"], "w").close()
sys.stdin.read()
