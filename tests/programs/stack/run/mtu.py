"""Does what its peer asks by lines, for two connections: ADDRESS PORT; with a ready file. `mtu`: IP_MTU and TCP_MAXSEG of the connection, and IP_MTU of a
connected UDP socket. `send LENGTH DISCOVER`: a datagram to the peer's address, at the same port, with that IP_MTU_DISCOVER."""
import errno
import os
import socket
import sys

address, port = sys.argv[1], int(sys.argv[2])
IP_MTU_DISCOVER, IP_MTU = 10, 14

server = socket.create_server((address, port))
open(os.environ["READY_FILE"], "w").close()


def sent(datagrams, length, discover):
    datagrams.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, discover)
    try:
        return f"sent {datagrams.send(bytes(length))}"
    except OSError as error:
        return errno.errorcode[error.errno]


for _ in range(2):
    connection, (peer, _) = server.accept()
    with connection, connection.makefile("rw") as lines, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.bind((address, 0))
        datagrams.connect((peer, port))
        for line in lines:
            match line.split():
                case ["mtu"]:
                    mtu = connection.getsockopt(socket.IPPROTO_IP, IP_MTU)
                    mss = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
                    print(mtu, mss, datagrams.getsockopt(socket.IPPROTO_IP, IP_MTU), file=lines, flush=True)
                case ["send", length, discover]:
                    print(sent(datagrams, int(length), int(discover)), file=lines, flush=True)
