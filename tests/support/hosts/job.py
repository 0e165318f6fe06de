"""A job of ranks over all hosts, started as a launcher would: host by host, with the variables that torchrun sets."""

import contextlib
import dataclasses
import os
import secrets
import tempfile
import time

PORT = 29500
PORTS_PER_JOB = 20  # the launcher's own, and the 16 after it that rank 0 may listen on
JOBS_MAX = 150  # then ports are used again; all of them lie below those that the kernel gives to connections
TAIL_CHARACTERS = 600


@dataclasses.dataclass(frozen=True)
class Ended:
    """Of one process. output: what it wrote to stdout and stderr, in order."""
    host: int
    rank: int
    code: int
    output: str


class JobTimeout(Exception):
    """Names host and rank of each process that did not end, and what all of them wrote last. Those have been killed."""


@contextlib.contextmanager
def job(hosts, argv, ranks_per_host, env):
    """A Running per rank, in order of ranks. env: variables of every rank. Left, it has killed those that still run."""
    with contextlib.ExitStack() as stack:
        running = []
        for host, variables in rank_places(hosts, ranks_per_host):
            rank = int(variables['RANK'])
            running.append(stack.enter_context(Running(hosts, host, rank, f'rank {rank}', argv, {**variables, **(env or {})})))
        yield running


def rank_places(hosts, ranks_per_host):
    """(host, variables) of each rank of a new job, for who starts the ranks himself."""
    hosts.jobs += 1
    ranks = hosts.count * ranks_per_host
    shared = {'WORLD_SIZE': ranks, 'LOCAL_WORLD_SIZE': ranks_per_host, 'MASTER_ADDR': hosts.address(0),
              'MASTER_PORT': PORT + hosts.jobs % JOBS_MAX * PORTS_PER_JOB, 'SLUICE_SECRET': secrets.token_hex(16)}
    places = []
    for rank in range(ranks):
        variables = {**shared, 'RANK': rank, 'LOCAL_RANK': rank % ranks_per_host}
        places.append((rank // ranks_per_host, {name: str(value) for name, value in variables.items()}))
    return places


class Running:
    """One process, until the context is left: then it is killed if it still runs. Its output goes to a file without a name."""

    def __init__(self, hosts, host, rank, name, argv, env):
        self.host, self.rank, self.name = host, rank, name
        self._hosts, self._output = hosts, tempfile.TemporaryFile()  # closed by __exit__
        try:
            self.process = hosts.start(host, argv, env, stdout=self._output, stderr=self._output)
        except BaseException:
            self._output.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._output.close()

    def kill(self):
        self._hosts.kill(self.process)

    def output(self):
        file = self._output.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors='replace')  # leaves alone where the process writes next

    def ended(self):
        return Ended(self.host, self.rank, self.process.returncode, self.output())


def wait_all(running, deadline):
    """An Ended of each."""
    end = time.monotonic() + deadline
    while late := [one for one in running if one.process.poll() is None]:
        if time.monotonic() > end:
            raise JobTimeout(_killed(running, late, deadline))
        time.sleep(0.005)
    return [one.ended() for one in running]


def _killed(running, late, deadline):
    for one in late:
        one.kill()
    lines = [f'not ended after {deadline:g} s: ' + ', '.join(f'host {one.host} {one.name}' for one in late)]
    for one in running:
        how = 'was killed' if one in late else f'ended with {one.process.returncode}'
        lines.append(f'host {one.host} {one.name} {how}; it wrote: {one.output()[-TAIL_CHARACTERS:].strip() or "nothing"}')
    return '\n'.join(lines)
