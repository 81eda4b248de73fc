#!/usr/bin/env python3
"""What setsockopt takes of each option that the stack has, what getsockopt gives of it then, and what of it is on the wire. A line each.

options.py OWN OWN_V6 PEER PEER_V6: own addresses, and addresses of the kernel (the same where it runs on the kernel's stack).
"""
import ctypes
import errno
import socket
import struct
import sys

IP, IPV6, SOL, TCP = socket.IPPROTO_IP, socket.IPPROTO_IPV6, socket.SOL_SOCKET, socket.IPPROTO_TCP
OF_BOTH = {
    "IP_TTL": (IP, 2), "IP_TOS": (IP, 1), "IP_MTU_DISCOVER": (IP, 10),
    "IPV6_UNICAST_HOPS": (IPV6, 16), "IPV6_TCLASS": (IPV6, 67), "IPV6_MTU_DISCOVER": (IPV6, 23), "IPV6_V6ONLY": (IPV6, 26),
    "SO_REUSEADDR": (SOL, 2), "SO_TYPE": (SOL, 3), "SO_SNDBUF": (SOL, 7), "SO_RCVBUF": (SOL, 8), "SO_KEEPALIVE": (SOL, 9),
    "SO_REUSEPORT": (SOL, 15), "SO_RCVLOWAT": (SOL, 18), "SO_ACCEPTCONN": (SOL, 30), "SO_PROTOCOL": (SOL, 38), "SO_DOMAIN": (SOL, 39),
    "99": (99, 1),
}
OF_TCP = {
    "SO_LINGER": (SOL, 13), "TCP_NODELAY": (TCP, 1), "TCP_MAXSEG": (TCP, 2), "TCP_CORK": (TCP, 3), "TCP_KEEPIDLE": (TCP, 4),
    "TCP_KEEPINTVL": (TCP, 5), "TCP_KEEPCNT": (TCP, 6), "TCP_SYNCNT": (TCP, 7), "TCP_LINGER2": (TCP, 8), "TCP_DEFER_ACCEPT": (TCP, 9),
    "TCP_WINDOW_CLAMP": (TCP, 10), "TCP_QUICKACK": (TCP, 12), "TCP_USER_TIMEOUT": (TCP, 18), "TCP_NOTSENT_LOWAT": (TCP, 25),
}
# An option that TCP may change by itself, or that depends on the path.
OF_THE_CONNECTION = {"SO_SNDBUF", "SO_RCVBUF", "TCP_MAXSEG", "TCP_WINDOW_CLAMP", "TCP_QUICKACK"}
NUMBERS = [-(1 << 31), -2, -1, *range(8), 64, 127, 128, 0xBB, 255, 256, 257, 1_000, 32_767, 32_768, 65_535, 65_536, (1 << 31) - 1]
VALUES = [struct.pack("i", number) for number in NUMBERS]
VALUES += [b"", b"\1", b"\0", b"\xff", b"\7\0", b"\1\1\1", b"\1\0\0\0\0\0\0\0", b"\1\0\0\0\5\0\0\0"]
LIBC = ctypes.CDLL(None, use_errno=True)


def error():
    return errno.errorcode[ctypes.get_errno()]


def given(one, option, room):
    value = ctypes.create_string_buffer(b"\xee" * 16, 16)
    length = ctypes.c_uint32(room & 0xFFFFFFFF)
    if LIBC.getsockopt(one.fileno(), *option, value, ctypes.byref(length)) != 0:
        return error()
    return value.raw[: length.value].hex() or "-"


def taken(one, option, value):
    return "taken" if LIBC.setsockopt(one.fileno(), *option, value, len(value)) == 0 else error()


def bound(kind, family, address):
    one = socket.socket(family, kind)
    one.bind((address, 0))
    return [one]


def listening(kind, family, address):
    [one] = bound(kind, family, address)
    one.listen()
    return [one]


def connected(kind, family, address):
    other = (listening if kind == socket.SOCK_STREAM else bound)(kind, family, address)[0]
    one = socket.socket(family, kind)
    one.connect(other.getsockname())
    return [one, other]


def accepted(kind, family, address):
    [listener] = listening(kind, family, address)
    one = socket.socket(family, kind)
    one.connect(listener.getsockname())
    return [listener.accept()[0], one, listener]


def of_all(kind, family, address, state):
    options = OF_BOTH if kind == socket.SOCK_DGRAM else {**OF_BOTH, **OF_TCP}
    name = f"{kind.name[5:]} {family.name[3:]}{' mapped' * address.startswith('::ffff')} {state.__name__}"
    for option, number in options.items():
        sockets = state(kind, family, address)
        shows = state in (bound, listening) or option not in OF_THE_CONNECTION
        if shows:
            rooms = (4, 1, 2, 0, 8)
            print(name, option, *[given(sockets[0], number, room) for room in rooms])
        for value in VALUES:
            if option == "SO_RCVLOWAT" and not 0 <= int.from_bytes(value[:4], "little", signed=True) < 65_536:
                continue  # What is beyond half of the largest buffer is not taken: another one on the kernel's stack.
            said = taken(sockets[0], number, value)
            then = [given(sockets[0], number, room) for room in (8, 1)] if shows else []
            print(name, option, value.hex() or "-", said, *then)
        for one in sockets:
            one.close()


class Wire:
    """Of packets to a port of the kernel's."""

    def __init__(self):
        self.packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        self.packets.settimeout(30)

    def to(self, port):
        while True:
            packet, about = self.packets.recvfrom(65_536)
            if about[2] == 4:  # PACKET_OUTGOING
                continue
            if about[1] == 0x0800:
                length, (protocol, hops, traffic_class) = 4 * (packet[0] & 15), (packet[9], packet[8], packet[1])
            elif about[1] == 0x86DD:
                length, (protocol, hops, traffic_class) = 40, (packet[6], packet[7], struct.unpack_from("!H", packet)[0] >> 4 & 255)
            else:
                continue
            if protocol not in (6, 17) or struct.unpack_from("!H", packet, length + 2)[0] != port:
                continue
            segment = packet[length:]
            if protocol == 17 or segment[13] & 8 and len(segment) > segment[12] >> 4 << 2:  # PSH
                return hops, traffic_class


SET = [(OF_BOTH[name], value) for name, value in (("IP_TTL", 33), ("IP_TOS", 0x48), ("IPV6_UNICAST_HOPS", 44), ("IPV6_TCLASS", 0x88))]


def on_the_wire(kind, family, own, peer_family, peer):
    wire = Wire()
    far = socket.socket(peer_family, kind)
    far.bind((peer.removeprefix("::ffff:"), 0))
    port = far.getsockname()[1]
    if kind == socket.SOCK_STREAM:
        far.listen()
    one = socket.socket(family, kind)
    one.bind((own, 0))
    one.connect((peer, port))
    what = f"{kind.name[5:]} {family.name[3:]} to {peer_family.name[3:]}"
    before = b"x"
    one.send(before)
    print(what, "before", *wire.to(port))
    for option, number in SET:
        taken(one, option, struct.pack("i", number))
    one.send(before)
    print(what, "then", *wire.to(port))
    one.close()
    far.close()


def main():
    own, own_v6, peer, peer_v6 = sys.argv[1:]
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        states = (bound, connected) if kind == socket.SOCK_DGRAM else (bound, listening, connected, accepted)
        for state in states:
            of_all(kind, socket.AF_INET, own, state)
            of_all(kind, socket.AF_INET6, own_v6, state)
            of_all(kind, socket.AF_INET6, f"::ffff:{own}", state)
        on_the_wire(kind, socket.AF_INET, own, socket.AF_INET, peer)
        on_the_wire(kind, socket.AF_INET6, own_v6, socket.AF_INET6, peer_v6)
        on_the_wire(kind, socket.AF_INET6, f"::ffff:{own}", socket.AF_INET, f"::ffff:{peer}")


main()
