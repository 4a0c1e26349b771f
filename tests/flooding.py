"""A program: an HTTP server that says `100 Continue` as fast as it can, and tells how much it got rid of.

    python flooding.py MIB AFTER

It prints its port. To the first ``AFTER`` requests of a connection it gives an answer before it floods.
When a connection is over, or that many MiB are sent on it, it prints how many bytes it has sent, and
takes the next one. It ends when its standard input does.
"""

from __future__ import annotations

import re
import socket
import sys
import threading

INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def flood(peer: socket.socket, most: int, after: int) -> int:
    """Talk to one client; return how many bytes of interim answers it was sent."""
    sent, block = 0, INTERIM * 10_000
    try:
        for number in range(after + 1):
            read = b""
            while b"\r\n\r\n" not in read:
                read += peer.recv(65536)
            size = re.search(rb"(?i)content-length: (\d+)", read)
            rest = int(size[1]) - len(read.partition(b"\r\n\r\n")[2]) if size else 0
            while rest > 0:
                rest -= len(peer.recv(rest))
            if number < after:
                peer.sendall(ANSWER)
            if number == after - 1:
                break
        while sent < most:
            sent += peer.send(block)
    except OSError:
        pass
    return sent


def serve(most: int, after: int) -> None:
    """Take one connection after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            peer, _ = listener.accept()
            with peer:
                print(flood(peer, most, after), flush=True)


if __name__ == "__main__":
    arguments = int(sys.argv[1]) * 2**20, int(sys.argv[2])
    threading.Thread(target=serve, args=arguments, daemon=True).start()
    sys.stdin.read()
