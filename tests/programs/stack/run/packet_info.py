"""Says of each datagram where it was sent to, and where an answer would come from (ip(7), IP_PKTINFO), and answers from there:
argv: port, how many."""
import os
import socket
import struct
import sys

IP_PKTINFO = 8
port, count = map(int, sys.argv[1:])
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
here.bind(("0.0.0.0", port))
open(os.environ["READY_FILE"], "w").close()
for _ in range(count):
    data, [(_, _, info)], _, peer = here.recvmsg(100, 100)
    _, answers, to = struct.unpack("I4s4s", info)
    said = f"{socket.inet_ntoa(to)} {socket.inet_ntoa(answers)}".encode()
    info = struct.pack("I4s4s", 0, answers, bytes(4))
    here.sendmsg([said], [(socket.IPPROTO_IP, IP_PKTINFO, info)], 0, peer)
