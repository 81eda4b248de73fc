"""Echo in the ways that Python's programs wait: HOW ADDRESS PORT CONNECTIONS."""
import asyncio
import os
import selectors
import socket
import sys
import threading

how, address, port, left = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def ready():
    open(os.environ["READY_FILE"], "w").close()


def listening():
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port))
    server.listen(64)
    assert server.getsockname()[:2] == (address, port), server.getsockname()
    ready()
    return server


def threads():
    server = listening()
    workers = []
    for _ in range(left):
        connection, peer = server.accept()
        assert connection.getpeername() == peer
        workers.append(threading.Thread(target=serve, args=(connection,)))
        workers[-1].start()
    for worker in workers:
        worker.join()


def serve(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def selected(kind):
    """One thread, non-blocking, level-triggered."""
    with kind() as selector, listening() as server:
        server.setblocking(False)
        selector.register(server, selectors.EVENT_READ)
        ended = 0
        while ended < left:
            for key, events in selector.select(60):
                if key.fileobj is server:
                    connection, _ = server.accept()
                    connection.setblocking(False)
                    selector.register(connection, selectors.EVENT_READ, bytearray())
                    continue
                connection, waiting = key.fileobj, key.data
                if events & selectors.EVENT_READ and len(waiting) < 1 << 20:
                    data = connection.recv(65536)
                    if not data:
                        selector.unregister(connection)
                        connection.setblocking(True)
                        connection.sendall(waiting)
                        connection.close()
                        ended += 1
                        continue
                    waiting += data
                try:
                    del waiting[: connection.send(waiting)]
                except BlockingIOError:
                    pass
                room = selectors.EVENT_READ if len(waiting) < 1 << 20 else 0
                wanted = room | (selectors.EVENT_WRITE if waiting else 0)
                selector.modify(connection, wanted, waiting)


async def asynchronous():
    ended = 0
    over = asyncio.Event()

    async def echo(reader, writer):
        nonlocal ended
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        ended += 1
        if ended == left:
            over.set()

    async with await asyncio.start_server(echo, sock=listening()):
        await over.wait()


if how == "threads":
    threads()
elif how == "asyncio":
    asyncio.run(asynchronous())
else:
    kinds = {"select": selectors.SelectSelector, "poll": selectors.PollSelector, "epoll": selectors.EpollSelector}
    selected(kinds[how])
