"""Hosts on one machine: namespaces of the network, with links between them that carry what real ones would.

    with Hosts(2, rate='1gbit') as hosts:
        for ended in hosts.run_job(['build/tools/all_reduce_perf', '-b', '1M'], ranks_per_host=2):
            print(ended.host, ended.rank, ended.code, ended.output)

    Apart    addresses (10.77.0.1 and on), ports, abstract Unix sockets, names (host0 and on; nothing resolves them). Shared: files,
             process ids, memory and cores, so times say little about as many machines.
    Links    network.py says how they are shaped, and why so.
    Faults   cut and mend (a cable), stall and resume (a process).
    End      what was started is killed and nothing is left: after the body, an exception, SIGINT, SIGTERM or SIGHUP. What is left of an
             owner that was killed outright, the next Hosts sweeps away.
    Needs    Linux, root, iproute2. missing() says what is not there.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

from . import capture, job, namespaces, network, open_mpi

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REAP_DEADLINE = 10.0  # seconds, after SIGKILL
TOOLS = {'ip': 'iproute2', 'tc': 'iproute2', 'bridge': 'iproute2', 'unshare': 'util-linux', 'taskset': 'util-linux'}  # and the package that Debian has each in
# A host's own name, so that programs that tell hosts apart by it do.
NAMED = ('unshare', '--uts', '--', 'sh', '-c', 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"')


def missing():
    """Why no hosts can be made here, or None. Found by making one."""
    if not sys.platform.startswith('linux') or os.geteuid() != 0:
        return 'hosts need root on Linux: only it may make namespaces of the network'
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f'hosts need {tool}, which the package {package} has'
    try:
        with Hosts(1) as hosts:
            process = hosts.start(0, ['true'], stderr=subprocess.PIPE, text=True)
            _, said = process.communicate(timeout=namespaces.COMMAND_DEADLINE)
            return f'no program runs in a host made here: {said.strip()}' if process.returncode != 0 else None
    except (namespaces.NetworkError, OSError, subprocess.TimeoutExpired) as error:
        return f'no host can be made here: {error}'


def shares_of_cores(count):
    """As taskset takes them, or None of each where there are too few."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < count:
        return [None] * count
    return [','.join(map(str, cores[host::count])) for host in range(count)]


class Hosts:
    """Entered and left by one thread, the main one if signals are to be seen; between, any thread, one call at a time."""

    def __init__(self, count, rate='1gbit', burst='16kb', latency='20ms', inward=False, congestion=None, own_cores=False):
        """congestion: a TCP congestion control, such as reno; None: the machine's own. own_cores: each host gets a share of the cores for
        itself, where there is one for each; else all have all."""
        self.count = count
        self._cores = shares_of_cores(count) if own_cores else [None] * count
        self.jobs = 0  # started so far
        self._shape = network.Shape(rate, burst, latency, inward)
        self._congestion = congestion
        self._network = None
        self._started = []
        self._handlers = {}

    def __enter__(self):
        namespaces.sweep()
        self._catch_signals()
        try:
            self._network = network.Network(self.count, self._shape, self._congestion)
        except BaseException:
            self._let_signals()
            raise
        return self

    def __exit__(self, *_):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)  # an end that is not ended
        try:
            for process in self._started:
                self._signal(process, signal.SIGKILL)
            self._network.remove()  # kills too what has left its group
            for process in self._started:
                process.wait(REAP_DEADLINE)
        finally:
            self._let_signals()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def namespace(self, host):
        return self._network.namespace(host)

    def address(self, host):
        return self._network.address(host)

    def start(self, host, argv, env=None, **popen):
        """A subprocess.Popen that leads a process group of its own. env: variables besides this process's."""
        popen.setdefault('stdin', subprocess.DEVNULL)
        words = ['ip', 'netns', 'exec', self.namespace(host), *NAMED, f'host{host}', *self._on_cores(host), *map(str, argv)]
        process = subprocess.Popen(words, env={**os.environ, **(env or {})}, start_new_session=True, **popen)
        self._started.append(process)
        return process

    def _on_cores(self, host):
        return [] if self._cores[host] is None else ['taskset', '-c', self._cores[host]]

    def cores(self):
        """As taskset takes them, of each host, with slashes; '-': all."""
        return '/'.join(cores or '-' for cores in self._cores)

    def kill(self, process):
        """With its group. What has left the group dies with the hosts."""
        self._signal(process, signal.SIGKILL)
        process.wait(REAP_DEADLINE)

    def stall(self, process):
        self._signal(process, signal.SIGSTOP)

    def resume(self, process):
        self._signal(process, signal.SIGCONT)

    def cut(self, host, carrier_lost=True):
        """Pulls its cable. Interface, address and routes stay; what is sent is lost, and no call says so. With its carrier the host loses
        its neighbours' link addresses, and asks for them once a second: after mend() what it sends may be lost for another second.
        carrier_lost=False: as if the cable were pulled behind a switch. The host sees nothing, and the loss ends with mend()."""
        self._network.cut(host, carrier_lost)

    def mend(self, host):
        self._network.mend(host)

    def bytes_sent(self, host, interface=network.INTERFACE):
        """Since the interface was made. What TCP hands over as one packet and a network card would split has its headers counted once."""
        shown = namespaces.command('ip', '-n', self.namespace(host), '-s', '-j', 'link', 'show', interface)
        return json.loads(shown)[0]['stats64']['tx']['bytes']

    def capture(self, host):
        return capture.Capture(self, host)

    def job(self, argv, ranks_per_host=1, env=None):
        """A context manager that gives a job.Running per rank, for who does something to a job while it runs."""
        return job.job(self, argv, ranks_per_host, env)

    @staticmethod
    def wait(running, deadline=60.0):
        """A job.Ended of each, whatever their codes; after the deadline (seconds) JobTimeout."""
        return job.wait_all(running, deadline)

    def run_job(self, argv, ranks_per_host=1, env=None, deadline=60.0):
        """Both in one. env: variables of every rank."""
        with self.job(argv, ranks_per_host, env) as running:
            return self.wait(running, deadline)

    def run_open_mpi(self, argv, ranks_per_host=1, env=None, settings=None, deadline=60.0):
        """The job.Ended of mpirun. settings: a dict for --mca, which goes before those of open_mpi.py."""
        return open_mpi.run_open_mpi(self, argv, ranks_per_host, env, settings, deadline)

    @staticmethod
    def _signal(process, which):
        if process.poll() is None:  # otherwise its number may be another's
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, which)

    def _catch_signals(self):
        """Signals that would end this process at once raise SystemExit, so that the body is left as by any exception."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in ENDING_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, lambda number, _: sys.exit(128 + number))

    def _let_signals(self):
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}
