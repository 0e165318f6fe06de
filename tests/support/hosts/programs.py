"""Small programs that hosts_test.py runs on hosts:  programs.py NAME ARGUMENTS..."""

import os
import socket
import sys
import threading
import time

GREETING = b'from this host\n'
CHUNK_BYTES = 1 << 18
WARM_UP = 0.2  # seconds


def answer(port):
    """Greets whoever connects."""
    with socket.create_server(('0.0.0.0', int(port))) as server:
        print('ready', flush=True)
        while True:
            with server.accept()[0] as peer:
                peer.sendall(GREETING)


def ask(address, port, timeout):
    """Ends with 0 if it is greeted."""
    with socket.create_connection((address, int(port)), float(timeout)) as peer:
        sys.exit(0 if peer.makefile('rb').readline() == GREETING else 1)


def take(port, seconds):
    """Prints the bits per second of a stream, and all bytes of it."""
    received = [0]
    with socket.create_server(('0.0.0.0', int(port))) as server:
        print('ready', flush=True)
        peer = server.accept()[0]
    thread = threading.Thread(target=_count, args=(peer, received))
    thread.start()
    time.sleep(WARM_UP)
    before, began = received[0], time.monotonic()
    time.sleep(float(seconds))
    bits_per_second = 8 * (received[0] - before) / (time.monotonic() - began)
    thread.join()
    print(bits_per_second, received[0], flush=True)


def _count(peer, received):
    buffer = bytearray(CHUNK_BYTES)
    while count := peer.recv_into(buffer):
        received[0] += count


def pour(address, port, seconds):
    end = time.monotonic() + float(seconds)
    with socket.create_connection((address, int(port))) as peer:
        while time.monotonic() < end:
            peer.sendall(bytes(CHUNK_BYTES))


def mark(address, port, dscp, count):
    """Sends bytes whose packets carry a mark."""
    with socket.create_connection((address, int(port))) as peer:
        peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(dscp) << 2)
        peer.sendall(bytes(int(count)))
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(CHUNK_BYTES):  # until all has arrived
            pass


def own(marker):
    """Makes hosts, runs something on one, and waits to be ended."""
    import hosts  # pylint: disable=import-outside-toplevel
    with hosts.Hosts(2) as two:
        two.start(1, ['sh', '-c', f'sleep {marker} & wait'])
        print(two.namespace(1), flush=True)
        time.sleep(60)


if __name__ == '__main__':
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    globals()[sys.argv[1]](*sys.argv[2:])
