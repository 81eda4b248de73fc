"""asyncio_server.py READY: sends everything back, line by line or not."""
import asyncio
import sys


async def serve(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    with open(sys.argv[1], "w") as ready:
        ready.write(f"{server.sockets[0].getsockname()[1]}\n")
    await server.serve_forever()


asyncio.run(main())
