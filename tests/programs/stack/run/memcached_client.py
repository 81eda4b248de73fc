"""Stores values over connections at a time, reads each back over another one, and compares every byte: ADDRESS PORT CONNECTIONS VALUES."""
import random
import socket
import sys
import threading

address, port, connections, values = sys.argv[1], *map(int, sys.argv[2:5])
failed = []
# The longest is still one piece of memory there: those are of up to 512 KiB.
LENGTHS = (0, 1, 100, 1_400, 1_448, 9_000)
RARE = {3: 400_000, 19: 70_000, 35: 70_000}


def value(n, key):
    length = RARE.get(key % 64, LENGTHS[key % 6])
    return random.Random(n << 20 | key).randbytes(length)


class Client:
    def __init__(self):
        self.socket = socket.create_connection((address, port), timeout=60)
        self.file = self.socket.makefile("rb")

    def asks(self, *parts):
        self.socket.sendall(b"".join(parts))

    def hears(self, expected):
        line = self.file.readline()
        assert line == expected + b"\r\n", (line, expected)

    def gives(self, key, flags, expected):
        self.hears(b"VALUE %s %d %d" % (key, flags, len(expected)))
        got = self.file.read(len(expected))
        assert got == expected, f"{key}: {len(got)} of {len(expected)} bytes, or others"
        self.hears(b"")

    def close(self):
        self.asks(b"quit\r\n")
        assert self.file.read() == b""
        self.file.close()
        self.socket.close()


def name(n, key):
    return b"%d-%d" % (n, key)


def stores(n):
    client = Client()
    for first in range(0, values, 16):
        # Those without an answer go before those with one, as they are sent.
        keys = range(first, min(first + 16, values))
        for key in keys:
            content, quiet = value(n, key), b" noreply" if key % 3 == 0 else b""
            client.asks(b"set %s %d 0 %d%s\r\n" % (name(n, key), key, len(content), quiet), content, b"\r\n")
        for key in keys:
            if key % 3:
                client.hears(b"STORED")
    client.close()


def reads(n):
    client = Client()
    for first in range(0, values, 16):
        keys = range(first, min(first + 16, values))
        client.asks(b"get %s\r\n" % b" ".join(name(n, key) for key in keys))
        for key in keys:
            client.gives(name(n, key), key, value(n, key))
        client.hears(b"END")
    client.asks(b"set count-%d 0 0 1\r\n0\r\n" % n)
    client.hears(b"STORED")
    client.asks(b"".join(b"incr count-%d %d\r\n" % (n, key) for key in range(100)))
    total = 0
    for key in range(100):
        total += key
        client.hears(b"%d" % total)
    client.asks(b"delete count-%d\r\nget count-%d\r\n" % (n, n))
    client.hears(b"DELETED")
    client.hears(b"END")
    client.close()


def at_once(what):
    def one(n):
        try:
            what(n)
        except Exception as error:
            failed.append((n, repr(error)))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit(f"{what.__name__}: {failed}")


at_once(stores)
at_once(reads)
print(f"{connections * values} values")
