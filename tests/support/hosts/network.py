"""The network of one run: a namespace for each host, and one more with a bridge, so that the machine's own network has no part in it.

    Shape    a token bucket (tbf) at the host's end of its link. With inward=True one at the bridge's end too, as a switch's port
             has: without it many hosts that send to one exceed its link.
    Queue    tbf's own: packets leave in the order in which they came, whatever their marks say, as at a plain switch. It holds
             `latency` at full rate, 2.4 MiB for 20 ms at 1 Gbit/s. TCP keeps about 1 ms of one stream in the queue of its own host, so a
             stream loses nothing there. At the bridge's end TCP does not see the queue; 20 ms are about what switches have.
    Packets  TCP hands over up to 64 KiB as one packet, for a network card to split. Where that is more than the burst, the kernel splits it
             in software and sends segment by segment (older kernels drop it): with a burst of 16 KiB a stream then reaches about
             80% of 1 Gbit/s. With gso_max_size below the burst it reaches 95%, and the rest is headers.
"""

import dataclasses
import re
import time

from .namespaces import NetworkError, command, new_run, remove

INTERFACE = 'eth0'  # of each host
SUBNET = '10.77.0'
HOSTS_MAX = 200
CARRIER_DEADLINE = 5.0  # seconds
GSO_BYTES_MAX = 65536
SEGMENT_BYTES, SEGMENT_BYTES_ON_LINK = 1448, 1514  # of TCP, and with the headers of TCP, IP and Ethernet
NO_IPV6 = ('ipv6/conf/default/disable_ipv6', 1)  # so that nothing is sent that no program sends
UNITS = {'': 1, 'b': 1, 'k': 1 << 10, 'kb': 1 << 10, 'm': 1 << 20, 'mb': 1 << 20}  # as tc reads sizes


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of a link. Words as tc takes them; rate None: as fast as the machine."""
    rate: str
    burst: str
    latency: str
    inward: bool


class Network:
    """Made by the constructor, or not at all; removed by remove()."""

    def __init__(self, count, shape, congestion=None):
        if not 1 <= count <= HOSTS_MAX:
            raise ValueError(f'{count} hosts: between 1 and {HOSTS_MAX}')
        self.count = count
        self.run = new_run()
        try:
            self._make_switch()
            for host in range(count):
                self._make_host(host, congestion)
                self._shape(host, shape)
        except BaseException:
            self.remove()
            raise

    @property
    def switch(self):
        return f'{self.run}-switch'

    def namespace(self, host):
        return f'{self.run}-host{host}'

    def address(self, host):
        return f'{SUBNET}.{host + 1}'

    def remove(self):
        remove(self.run)

    def cut(self, host, carrier_lost):
        if carrier_lost:
            command('ip', '-n', self.switch, 'link', 'set', f'port{host}', 'down')
        else:
            self._set_port(host, 'disabled')

    def mend(self, host):
        command('ip', '-n', self.switch, 'link', 'set', f'port{host}', 'up')
        until = time.monotonic() + CARRIER_DEADLINE
        while True:  # a bridge refuses a port until its carrier has been noticed, which a busy machine is slow at
            try:
                return self._set_port(host, 'forwarding')
            except NetworkError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _set_port(self, host, state):
        command('bridge', '-n', self.switch, 'link', 'set', 'dev', f'port{host}', 'state', state)

    def _make_switch(self):
        command('ip', 'netns', 'add', self.switch)
        _set_kernel(self.switch, NO_IPV6)
        command('ip', '-n', self.switch, 'link', 'add', 'bridge', 'type', 'bridge', 'stp_state', '0')
        command('ip', '-n', self.switch, 'link', 'set', 'bridge', 'up')

    def _make_host(self, host, congestion):
        name, port = self.namespace(host), f'port{host}'
        command('ip', 'netns', 'add', name)
        _set_kernel(name, NO_IPV6, *([('ipv4/tcp_congestion_control', congestion)] if congestion else []))
        command('ip', '-n', name, 'link', 'set', 'lo', 'up')
        command('ip', '-n', name, 'link', 'add', INTERFACE, 'type', 'veth', 'peer', 'name', port, 'netns', self.switch)
        command('ip', '-n', name, 'address', 'add', f'{self.address(host)}/24', 'dev', INTERFACE)
        command('ip', '-n', name, 'link', 'set', INTERFACE, 'up')
        command('ip', '-n', self.switch, 'link', 'set', port, 'master', 'bridge', 'up')

    def _shape(self, host, shape):
        if shape.rate is None:
            return
        command('ip', '-n', self.namespace(host), 'link', 'set', INTERFACE, 'gso_max_size', str(_gso_bytes(shape.burst)))
        ends = [(self.namespace(host), INTERFACE)] + ([(self.switch, f'port{host}')] if shape.inward else [])
        for name, interface in ends:
            command('tc', '-n', name, 'qdisc', 'add', 'dev', interface, 'root', 'tbf', 'rate', shape.rate, 'burst', shape.burst,
                    'latency', shape.latency)


def _gso_bytes(burst):
    """The payload of the largest packet that the bucket takes whole."""
    segments = max(1, _size_of(burst) // SEGMENT_BYTES_ON_LINK)
    return min(GSO_BYTES_MAX, segments * SEGMENT_BYTES)


def _size_of(text):
    found = re.fullmatch(r'(\d+)([a-z]*)', text)
    if not found or found[2] not in UNITS:
        raise ValueError(f"'{text}' is no size: a whole number with one of {', '.join(unit for unit in UNITS if unit)}")
    return int(found[1]) * UNITS[found[2]]


def _set_kernel(name, *settings):
    """Of a namespace. What this kernel does not have stays as it is."""
    lines = [f'file=/proc/sys/net/{path}; [ ! -e $file ] || echo {value} >$file' for path, value in settings]
    command('ip', 'netns', 'exec', name, 'sh', '-ec', '\n'.join(lines))
