"""Talks to itself: HOW ADDRESS BYTES, over TCP and UDP; each byte is compared."""
import asyncio
import random
import socket
import sys
import threading

how, address, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
CONNECTIONS = 8
content = [random.Random(n).randbytes(size) for n in range(CONNECTIONS)]


def threads():
    server = socket.create_server((address, 7), family=family)

    def accept():
        with server:
            for _ in range(CONNECTIONS):
                connection, peer = server.accept()
                assert peer[0] == address and connection.getpeername() == peer, peer
                threading.Thread(target=echo, args=(connection,)).start()

    def echo(connection):
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def ask(sent):
        with socket.create_connection((address, 7)) as connection:
            sending = threading.Thread(target=lambda: (connection.sendall(sent), connection.shutdown(socket.SHUT_WR)))
            sending.start()
            got = bytearray()
            while data := connection.recv(1 << 20):
                got += data
            sending.join()
            answers.append(got == sent)

    answers = []
    all_of_them = [threading.Thread(target=accept)] + [threading.Thread(target=ask, args=(sent,)) for sent in content]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    assert answers == [True] * CONNECTIONS, answers


async def asynchronous():
    async def echo(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def ask(sent):
        reader, writer = await asyncio.open_connection(address, 7)

        async def send():
            writer.write(sent)
            await writer.drain()
            writer.write_eof()

        _, got = await asyncio.gather(send(), reader.read())
        writer.close()
        await writer.wait_closed()
        assert got == sent, len(got)

    async with await asyncio.start_server(echo, address, 7):
        await asyncio.gather(*(ask(sent) for sent in content))


def datagrams():
    with socket.socket(family, socket.SOCK_DGRAM) as server, socket.socket(family, socket.SOCK_DGRAM) as client:
        server.bind((address, 7))
        client.connect((address, 7))
        for length in [0, 1, 1_472, 1_473, 40_000]:
            client.send(content[0][:length])
            data, peer = server.recvfrom(70_000)
            assert data == content[0][:length] and peer[:2] == client.getsockname()[:2], (len(data), peer)
            # To itself.
            server.sendto(data, (address, 7))
            assert server.recvfrom(70_000)[0] == data


def nobody():
    try:
        socket.create_connection((address, 9))
        raise AssertionError("connected")
    except ConnectionRefusedError:
        pass
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((address, 9))
        client.send(b"x")
        try:
            client.recv(1)
            raise AssertionError("received")
        except ConnectionRefusedError:
            pass


threads() if how == "threads" else asyncio.run(asynchronous())
datagrams()
nobody()
