"""A program of Open MPI over all hosts: mpirun runs on host 0 and enters the others' namespaces where it would use ssh."""

import contextlib
import os
import shutil
import subprocess

from . import job, network

LAUNCHER = 'mpirun.openmpi'
# Taken apart at blanks by mpirun, so this file's folder must have none in its path.
REMOTE_SHELL = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'remote_shell.sh')
# Its control connections go over the hosts' links too; the ranks of one host talk over shared memory.
SETTINGS = {'plm': 'rsh', 'oob_tcp_if_include': network.INTERFACE, 'pml': 'ob1', 'btl': 'vader,tcp,self',
            'btl_tcp_if_include': network.INTERFACE}
END_DEADLINE = 5.0  # seconds


def missing_open_mpi():
    """Why run_open_mpi can't work here, or None."""
    return None if shutil.which(LAUNCHER) else f'{LAUNCHER} is not there, which the package openmpi-bin has'


def run_open_mpi(hosts, argv, ranks_per_host, env, settings, deadline):
    """Its output is that of all ranks, and its code not 0 if one of theirs is not."""
    slots = ','.join(f'{hosts.address(host)}:{ranks_per_host}' for host in range(hosts.count))
    words = [LAUNCHER, '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '--host', slots,
             '-n', hosts.count * ranks_per_host]
    agent = f'sh {REMOTE_SHELL} {hosts.namespace("")} {hosts.cores()}'
    for name, value in {**SETTINGS, 'plm_rsh_agent': agent, **(settings or {})}.items():
        words += ['--mca', name, value]
    with Mpirun(hosts, 0, 0, 'mpirun', [*words, *argv], env) as running:
        return job.wait_all([running], deadline)[0]


class Mpirun(job.Running):
    def kill(self):
        """Asked to end it ends its ranks, which are in other groups and on other hosts. If it does not, they end with the hosts."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_DEADLINE)
        super().kill()
