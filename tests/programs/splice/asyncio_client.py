"""asyncio_client.py CONNECTIONS PORT: messages, then an end, on 50 connections at a time."""
import asyncio
import sys


async def one(port, number, places):
    async with places:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for size in (1, 50, 5000, 100000):
            message = bytes((number + n) % 256 for n in range(min(size, 256))) * (size // 256 + 1)
            writer.write(message)
            await writer.drain()
            if await reader.readexactly(len(message)) != message:
                sys.exit(f"connection {number}: other bytes")
        writer.write(b"last")
        writer.write_eof()
        if await reader.read() != b"last":
            sys.exit(f"connection {number}: the end is missing")
        writer.close()


async def main():
    connections, port = int(sys.argv[1]), int(sys.argv[2])
    places = asyncio.Semaphore(50)
    await asyncio.gather(*(one(port, n, places) for n in range(connections)))


asyncio.run(main())
