"""Echoes datagrams until one says "over": HOW ADDRESS PORT; with a ready file. Or asks such a server and compares: client ADDRESS PORT COUNT SIZE."""
import asyncio
import os
import select
import socket
import sys

how, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET


def bound():
    server = socket.socket(family, socket.SOCK_DGRAM)
    server.bind((address, port))
    return server


def ready():
    open(os.environ["READY_FILE"], "w").close()


def blocking():
    with bound() as server:
        ready()
        while True:
            data, peer = server.recvfrom(70000)
            server.sendto(data, peer)
            if data == b"over":
                return


def epoll():
    with bound() as server:
        server.setblocking(False)
        watch = select.epoll()
        watch.register(server, select.EPOLLIN | select.EPOLLET)
        ready()
        while True:
            watch.poll()
            while True:
                try:
                    data, peer = server.recvfrom(70000)
                except BlockingIOError:
                    break
                server.sendto(data, peer)
                if data == b"over":
                    return


class Echo(asyncio.DatagramProtocol):
    def __init__(self, over):
        self.over = over

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        self.transport.sendto(data, peer)
        if data == b"over":
            # What was sent is out before the transport is closed.
            self.over.set_result(None)


async def serve():
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(lambda: Echo(over), local_addr=(address, port), family=family)
    ready()
    await over
    transport.close()


class Ask(asyncio.DatagramProtocol):
    """One after the other: a lost one, which none may be here, would be waited for until the watchdog comes."""

    def __init__(self, questions, over):
        self.questions, self.over = questions, over

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.asked = self.questions.pop()
        self.transport.sendto(self.asked)

    def datagram_received(self, data, peer):
        if data != self.asked or peer[:2] != (address, port):
            self.over.set_exception(ValueError(f"{len(data)} bytes from {peer}"))
        elif self.questions:
            self.ask()
        else:
            self.over.set_result(None)


def questions():
    count, size = int(sys.argv[4]), int(sys.argv[5])
    return [b"over"] + [bytes((n * 7 + at) % 251 for at in range(n * size // count + 1)) for n in range(count)]


async def ask():
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    transport, _ = await loop.create_datagram_endpoint(lambda: Ask(questions(), over), remote_addr=(address, port))
    await over
    transport.close()


def client(connects):
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        if connects:
            one.connect((address, port))
        for asked in reversed(questions()):
            one.send(asked) if connects else one.sendto(asked, (address, port))
            data, peer = one.recvfrom(70000)
            assert data == asked and peer[:2] == (address, port), (len(data), peer)


match how:
    case "blocking":
        blocking()
    case "epoll":
        epoll()
    case "asyncio":
        asyncio.run(serve())
    case "client":
        client(True)
    case "client_unconnected":
        client(False)
    case "client_asyncio":
        asyncio.run(ask())
