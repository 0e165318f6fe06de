"""What went over a host's interface: recorder.py runs on the host and counts."""

import json
import os
import select
import subprocess
import sys

from .namespaces import NetworkError
from .network import INTERFACE

RECORDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'recorder.py')
DEADLINE = 10.0  # seconds, to start and to end


class Capture:
    """As a context manager. Afterwards `bytes` maps (source port, destination port, dscp) to bytes of payload of TCP and UDP over IPv4,
    in both directions, sent again or not; `lost` is how many packets came faster than they could be counted."""

    def __init__(self, hosts, host):
        self.bytes, self.lost = {}, 0
        self._hosts, self._host = hosts, host
        self._process = None

    def __enter__(self):
        self._process = self._hosts.start(self._host, [sys.executable, '-ISB', RECORDER, INTERFACE],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not select.select([self._process.stdout], [], [], DEADLINE)[0] or self._process.stdout.readline() != 'ready\n':
            self._hosts.kill(self._process)
            raise NetworkError(f'no packets can be recorded on host {self._host}')
        return self

    def __exit__(self, *_):
        try:
            answer = json.loads(self._process.communicate(timeout=DEADLINE)[0])  # closing its stdin ends it
        finally:
            self._hosts.kill(self._process)
        self.lost = answer['lost']
        self.bytes = {(source, destination, dscp): count for source, destination, dscp, count in answer['bytes']}

    def marks(self):
        """Bytes by dscp alone."""
        return {dscp: sum(count for key, count in self.bytes.items() if key[2] == dscp) for _, _, dscp in self.bytes}
