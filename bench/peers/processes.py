"""The processes of one configuration, and the pipes that they take commands from. loop.h says what is spoken."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

START_DEADLINE = 60.0  # seconds
CLOSE_DEADLINE = 10.0
TAIL_LINES = 4


class PeerLost(Exception):
    """The processes ended, or did not answer in time; the text says what was seen."""


class Peer:
    """Started by the constructor, ended by close(). After PeerLost it is good for close() only."""

    def __init__(self, configuration, ranks, bin_folder):
        self.configuration = configuration
        self.ranks = configuration.speakers or ranks
        self.name = ''
        self._processes, self._commands, self._answers = [], [], []
        self._folder = tempfile.mkdtemp(prefix='peers-')
        self._rest = [b''] * self.ranks
        try:
            self._open_pipes()
            self._start(ranks, bin_folder)
            self.name = self._gather('starting', START_DEADLINE)[0].removeprefix('ready ')
        except BaseException:
            self.close()
            raise

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _open_pipes(self):
        for rank in range(self.ranks):
            for kind in ('commands', 'answers'):
                os.mkfifo(self._path(f'{rank}.{kind}'))
            # Read and write: opening waits for nobody, and a rank that is gone breaks nothing here.
            self._commands.append(os.open(self._path(f'{rank}.commands'), os.O_RDWR))
            self._answers.append(os.open(self._path(f'{rank}.answers'), os.O_RDONLY | os.O_NONBLOCK))

    def _start(self, ranks, bin_folder):
        environment = dict(os.environ, **dict(self.configuration.environment))
        for rank in range(ranks if self.configuration.each_rank else 1):
            command = [word.format(directory=self._folder, ranks=ranks, rank=rank, bin=bin_folder)
                       for word in self.configuration.command]
            with open(self._path(f'output.{rank}'), 'wb') as output:
                self._processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                                        stderr=output, start_new_session=True))

    def ask(self, command, deadline):
        """One answer per rank."""
        for pipe in self._commands:
            os.write(pipe, command.encode() + b'\n')
        return self._gather(command, deadline)

    def _gather(self, what, deadline):
        answers = [None] * self.ranks
        end = time.monotonic() + deadline
        while None in answers:
            left = end - time.monotonic()
            if left <= 0:
                raise PeerLost(f'no answer for {deadline:.0f} s to "{what}" from rank '
                               f'{", ".join(str(rank) for rank, answer in enumerate(answers) if answer is None)}{self._tail()}')
            for rank in self._readable(answers, min(left, 0.5)):
                answers[rank] = self._line(rank)
            if None in answers and (codes := [process.poll() for process in self._processes]) and any(
                    code is not None for code in codes):
                time.sleep(0.05)  # what it wrote last
                raise PeerLost(f'ended with {next(code for code in codes if code is not None)} at "{what}"{self._tail()}')
        return answers

    def _readable(self, answers, wait):
        waiting = {self._answers[rank]: rank for rank, answer in enumerate(answers) if answer is None}
        poll = select.poll()
        for pipe in waiting:
            poll.register(pipe, select.POLLIN)
        found = [(waiting[pipe], events) for pipe, events in poll.poll(wait * 1000)]
        if found and not any(events & select.POLLIN for _, events in found):
            time.sleep(0.05)  # its end of the pipe is closed; the process's end follows
        return [rank for rank, events in found if events & select.POLLIN]

    def _line(self, rank):
        self._rest[rank] += os.read(self._answers[rank], 65536)
        line, newline, rest = self._rest[rank].partition(b'\n')
        if not newline:
            return None
        self._rest[rank] = rest
        return line.decode(errors='replace')

    def _tail(self):
        lines = []
        for rank in range(len(self._processes)):
            with open(self._path(f'output.{rank}'), encoding='utf-8', errors='replace') as output:
                lines += [line.strip() for line in output if line.strip(' -\n')][-TAIL_LINES:]
        return ': ' + ' | '.join(lines[-TAIL_LINES:]) if lines else ''

    def close(self):
        for pipe in self._commands:  # the end of the commands
            os.close(pipe)
        end = time.monotonic() + CLOSE_DEADLINE
        for process in self._processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # the session that was started for it
                process.wait()
        for pipe in self._answers:
            os.close(pipe)
        self._commands, self._answers, self._processes = [], [], []
        shutil.rmtree(self._folder, ignore_errors=True)
