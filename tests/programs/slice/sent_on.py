"""Sends over TCP, faster than its device does, and meanwhile from a packet socket on another device what is the same to
look at: segments of the connection that have not left yet. SERVER PORT DEVICE"""
import os
import socket
import struct
import sys

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21
REPAIR_ON, REPAIR_OFF_NO_WP, SEND_QUEUE = 1, -1, 2
SENT, EACH, COPIES = 200_000, 777, 150

server, port, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
tcp = socket.create_connection((server, port))
tcp.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, REPAIR_ON)
tcp.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
first = tcp.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) % 2**32
tcp.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, REPAIR_OFF_NO_WP)
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind((device, 0x0800))
own, peer = tcp.getsockname(), tcp.getpeername()


def segment(at):
    addresses = socket.inet_aton(own[0]) + socket.inet_aton(peer[0])
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + EACH, at % 65536, 0, 64, 6, 0) + addresses
    ports = struct.pack(">HHII", own[1], peer[1], (first + at) % 2**32, 0)
    return b"\2" * 12 + b"\x08\0" + ip + ports + struct.pack(">BBHHH", 0x50, 0x10, 64, 0, 0) + bytes(EACH)


tcp.setblocking(False)
sent = tcp.send(bytes(SENT))
for at in range(0, COPIES * EACH, EACH):
    raw.send(segment(at))
tcp.setblocking(True)
tcp.sendall(bytes(SENT - sent))
tcp.shutdown(socket.SHUT_WR)
assert tcp.recv(1) == b"", "somebody answers"
