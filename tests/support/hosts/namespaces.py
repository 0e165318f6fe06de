"""Namespaces of the network by names that say who owns them, so that what a dead owner left can be told from what a live one uses.

    Names    sluice-PID-START-SERIAL-WHAT. PID is the owner's, and START the time at which it started: a later process with the
             same PID has another START. PID, START and SERIAL make a run.
"""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import time

FOLDER = '/run/netns'  # where `ip netns` keeps names
NAME = re.compile(r'(sluice-(\d+)-(\d+)-\d+)-(?:switch|host\d+)$')
COMMAND_DEADLINE = 20.0  # seconds
KILL_DEADLINE = 10.0

serials = itertools.count(1)  # of the runs of this process


class NetworkError(Exception):
    """The text says what failed, and with what words of whom."""


def command(*words):
    """What it printed."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_DEADLINE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkError(f'{" ".join(words)}: {error}') from error
    if done.returncode != 0:
        raise NetworkError(f'{" ".join(words)}: {done.stderr.strip() or f"ended with {done.returncode}"}')
    return done.stdout


def new_run():
    return f'sluice-{os.getpid()}-{_started_at(os.getpid())}-{next(serials)}'


def names_of(run=None):
    """The namespaces that are there, of one run or of all."""
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    return sorted(name for name in names if (found := NAME.match(name)) and run in (None, found[1]))


def sweep():
    """Removes the runs of owners that live no longer."""
    owners = {(found[1], found[2], found[3]) for found in map(NAME.match, names_of())}
    for run, pid, start in sorted(owners):
        if _started_at(pid) != start:
            remove(run)


def remove(run):
    """Kills what runs in the namespaces of a run, and removes them. Others may do the same at the same time."""
    survivors = _kill(run)
    for name in names_of(run):
        with contextlib.suppress(NetworkError):
            command('ip', 'netns', 'del', name)
    if left := names_of(run) + survivors:
        raise NetworkError(f'of {run} can not be removed: {", ".join(map(str, left))}')


def _kill(run):
    """The processes that SIGKILL did not end in time."""
    end = time.monotonic() + KILL_DEADLINE
    while (pids := [pid for name in names_of(run) for pid in _pids_in(name)]) and time.monotonic() < end:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return pids


def _pids_in(name):
    with contextlib.suppress(NetworkError):
        return [int(pid) for pid in command('ip', 'netns', 'pids', name).split()]
    return []  # it has gone


def _started_at(pid):
    """In ticks since boot; nothing if there is no such process."""
    try:
        with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as file:
            return file.read().rpartition(')')[2].split()[19]
    except OSError:
        return ''
