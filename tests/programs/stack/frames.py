#!/usr/bin/env python3
"""Sends frames that are of no connection, as a neighbour sends them by mistake or by design, and ICMP errors about connections.

frames.py FAR NEAR OWN STACK OWN_V6 STACK_V6 PORT...: from one end of a cable to the other, which the stack has; ports of OWN that are connected to STACK's port 7.
"""
import socket
import struct
import sys

FAR, NEAR, OWN, STACK, OWN_V6, STACK_V6 = sys.argv[1:7]
OWN, STACK = socket.inet_aton(OWN), socket.inet_aton(STACK)
OWN_V6, STACK_V6 = (socket.inet_pton(socket.AF_INET6, a) for a in (OWN_V6, STACK_V6))


def end(device):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.bind((device, 0))
    return link, link.getsockname()[4]


link, OWN_MAC = end(FAR)
MAC = end(NEAR)[1]


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def v4(protocol, payload, source=OWN, to=STACK, version=0x45):
    header = struct.pack("!BBHHHBBH", version, 0, 20 + len(payload), 9, 0, 64, protocol, 0) + source + to
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def v6(protocol, payload):
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 255) + OWN_V6 + STACK_V6 + payload


def icmp(kind, code, rest):
    message = struct.pack("!BBH", kind, code, 0) + rest
    return v4(1, message[:2] + struct.pack("!H", checksum(message)) + message[4:])


def icmp6(kind, code, rest):
    message = struct.pack("!BBH", kind, code, 0) + rest
    pseudo = OWN_V6 + STACK_V6 + struct.pack("!II", len(message), 58)
    return v6(58, message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:])


def send(packet, times=1):
    ethertype = 0x800 if packet[0] >> 4 < 6 else 0x86DD
    frame = MAC + OWN_MAC + struct.pack("!H", ethertype) + packet
    for _ in range(times):
        link.send(frame.ljust(60, b"\0"))


def about(port):
    """The stack's segment from port 7 to this one of ours."""
    return b"\0" * 4 + v4(6, struct.pack("!HHI", 7, port, 0), STACK, OWN)


# About connections that are there, and not about what is in flight; then about others.
for port in map(int, sys.argv[7:]):
    send(icmp(3, 3, about(port)))
for port in range(1, 21):
    send(icmp(3, 3, about(port)))
send(icmp(11, 0, about(1)[:20]), 2)
send(icmp(12, 0, b"\0" * 4), 2)
send(icmp(13, 0, b"\0" * 16), 2)
send(v4(132, b"\0" * 8), 2)
send(v4(6, b"\0" * 8, version=0x44), 2)
send(icmp6(200, 0, b"\0" * 4), 2)
send(icmp6(100, 0, b"\0" * 4), 2)
send(icmp6(134, 0, b"\0" * 12), 2)
send(icmp6(136, 0, b"\x20\0\0\0" + STACK_V6 + b"\2\1" + OWN_MAC), 2)
# Of IPv6: a port with a queue for each engine gets those of IPv4 from the kernel as one packet (PACKET_FANOUT_FLAG_DEFRAG).
datagram = struct.pack("!HHHH", 5555, 4446, 8 + 2100, 0) + b"y" * 2100
pseudo = OWN_V6 + STACK_V6 + struct.pack("!II", len(datagram), 17)
datagram = datagram[:6] + struct.pack("!H", checksum(pseudo + datagram)) + datagram[8:]
for at in (0, 1000, 2000):
    more = at < 2000
    send(v6(44, struct.pack("!BBHI", 17, 0, at | more, 9) + datagram[at:at + 1000]))
