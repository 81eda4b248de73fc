"""The instance goes away and comes back: ADDRESS OF-THE-STACK OF-THE-KERNEL FIFO. What is new is the new one's, and what was before stays lost."""
import errno
import os
import select
import socket
import subprocess
import sys

own, kernel, fifo = sys.argv[1:4]


def told():
    with open(fifo) as lines:
        return lines.read()


def name(call):
    try:
        return repr(call())
    except OSError as error:
        return errno.errorcode[error.errno]


def said(**results):
    print(*(f"{what} {result}" for what, result in results.items()), flush=True)


def connected():
    with socket.create_connection((kernel, 9)) as connection:
        return connection.send(b"x")


old = [socket.create_server((own, port)) for port in (7, 70)]
connection = socket.create_connection((kernel, 9))
datagrams = socket.socket(type=socket.SOCK_DGRAM)
datagrams.bind((own, 7))
open(os.environ["READY_FILE"], "w").close()
assert told() == "gone"
said(opens=name(connected), receives=name(lambda: connection.recv(10)))
assert told() == "back"
# Sockets of the new one have rows, too.
new = [socket.create_server((own, port)) for port in (7, 71, 72)]
said(
    opens=name(connected),
    receives=name(lambda: connection.recv(10)),
    sends=name(lambda: connection.send(b"x", socket.MSG_NOSIGNAL)),
    accepts=name(old[0].accept),
    listens=name(lambda: old[1].listen(1)),
    options=name(lambda: old[1].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)),
    waits=name(lambda: select.select(new[1:], [], [], 0)[0]),
    datagrams=name(lambda: datagrams.sendto(b"x", (kernel, 9))),
)
with new[0].accept()[0] as came, socket.socket(type=socket.SOCK_DGRAM) as other:
    other.bind((own, 9))
    came.sendall(came.recv(5))
    other.sendto(*other.recvfrom(10))
child = "import socket; print('child', socket.create_connection((%r, 9)).send(b'x'))" % kernel
subprocess.run([sys.executable, "-c", child], check=True)
