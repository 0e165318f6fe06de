"""Counts the payload that passes an interface, until its stdin ends:  recorder.py INTERFACE"""

import json
import select
import socket
import struct
import sys

ETH_P_ALL, ETHERNET_BYTES, HEADERS_BYTES = 0x0003, 14, 192
SO_RCVBUFFORCE = 33
ROOM_BYTES = 64 << 20
DRAIN_MAX = 1 << 16  # packets
SOL_PACKET, PACKET_STATISTICS = 263, 6


def payload_of(packet):
    """(source port, destination port, dscp) and bytes; nothing for what is not TCP or UDP, or is a later fragment of it."""
    ip = packet[ETHERNET_BYTES:]
    if packet[12:14] != b'\x08\x00' or len(ip) < 20 or ip[9] not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP):
        return None
    total_bytes, fragment = struct.unpack_from('!H', ip, 2)[0], struct.unpack_from('!H', ip, 6)[0]
    head_bytes = 4 * (ip[0] & 15)
    inner = ip[head_bytes:]
    if fragment & 0x1fff or len(inner) < 13:
        return None
    source, destination = struct.unpack_from('!HH', inner)
    inner_bytes = 4 * (inner[12] >> 4) if ip[9] == socket.IPPROTO_TCP else 8
    return (source, destination, ip[1] >> 2), total_bytes - head_bytes - inner_bytes


def drain(packets, counts):
    for _ in range(DRAIN_MAX):  # whoever sends faster than this counts must not keep it from ending
        try:
            found = payload_of(packets.recv(HEADERS_BYTES))
        except BlockingIOError:
            return
        if found:
            counts[found[0]] = counts.get(found[0], 0) + found[1]


def main(interface):
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES)
    packets.bind((interface, ETH_P_ALL))
    packets.setblocking(False)
    print('ready', flush=True)
    counts, stdin_ended = {}, False
    while not stdin_ended:
        stdin_ended = sys.stdin in select.select([packets, sys.stdin], [], [])[0]
        drain(packets, counts)
    lost = struct.unpack('II', packets.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    print(json.dumps({'lost': lost, 'bytes': [[*key, count] for key, count in counts.items()]}))


if __name__ == '__main__':
    main(*sys.argv[1:])
