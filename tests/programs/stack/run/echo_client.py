"""Sends bytes of a seed over connections at a time and compares what comes back: HOW ADDRESS PORT CONNECTIONS BYTES."""
import asyncio
import random
import socket
import sys
import threading

how, address, port, connections, size = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
failed = []


def content(n):
    return random.Random(n).randbytes(size)


def one(n):
    try:
        sent = content(n)
        with socket.create_connection((address, port), timeout=60) as connection:
            def send():
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)

            sending = threading.Thread(target=send)
            sending.start()
            got = bytearray()
            while data := connection.recv(1 << 20):
                got += data
            sending.join()
        assert got == sent, f"{len(got)} of {len(sent)} bytes"
    except Exception as error:
        failed.append((n, error))


def threads():
    all_of_them = [threading.Thread(target=one, args=(n,)) for n in range(connections)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()


async def one_async(n):
    sent = content(n)
    reader, writer = await asyncio.open_connection(address, port)

    async def send():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    _, got = await asyncio.gather(send(), reader.read())
    writer.close()
    await writer.wait_closed()
    assert got == sent, f"{len(got)} of {len(sent)} bytes"


async def asynchronous():
    await asyncio.wait_for(asyncio.gather(*(one_async(n) for n in range(connections))), 60)


if how == "threads":
    threads()
else:
    asyncio.run(asynchronous())
if failed:
    sys.exit(f"{failed}")
print(f"{connections} connections, {size} bytes each")
