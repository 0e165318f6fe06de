"""One case on all configurations: checked, scouted, then timed in turn, so that what disturbs one disturbs all."""

import dataclasses
import statistics

from configurations import PEER, ROOFLINE
from processes import PeerLost

CHECK_DEADLINE = 120.0  # seconds
TIME_DEADLINE = 120.0
WAIT_MS = 300
ITERATIONS_MAX = 200000
ITERATIONS_MIN = 2
OK, UNSUPPORTED, WRONG, ERROR, LOST = 'ok', 'unsupported', 'wrong', 'error', 'lost'


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    ranks: int
    heat: str  # warm, cold
    bytes: int

    def __str__(self):
        return f'{self.op} of {self.bytes} bytes, {self.ranks} ranks, {self.heat}'


@dataclasses.dataclass
class Outcome:
    """Of one configuration in one case. Times in nanoseconds; samples[i] of all configurations belong together."""
    status: str = OK
    text: str = ''
    scouted: float = float('inf')
    iterations: int = 0
    samples: list = dataclasses.field(default_factory=list)

    @property
    def median(self):
        return statistics.median(self.samples)


@dataclasses.dataclass(frozen=True)
class Effort:
    samples: int
    scouts: int
    batch_ns: float


class Field:
    """The peers that still live, and what became of the others."""

    def __init__(self, notes):
        self.peers, self.notes = [], notes

    def lose(self, peer, at, why):
        self.peers.remove(peer)
        self.notes.append(f'{peer.configuration.label} was lost at {at}: {why}')
        peer.close()


def paired_ratio(numerator, denominator):
    """The median of the ratios of samples that were taken together. Empty lists give None."""
    ratios = [a / b for a, b in zip(numerator, denominator)]
    return statistics.median(ratios) if ratios else None


def _check(peer, case):
    answers = peer.ask(f'check {case.op} {case.bytes} {case.heat}', CHECK_DEADLINE)
    for status in (ERROR, WRONG, UNSUPPORTED):
        for answer in answers:
            if answer.startswith(status):
                return Outcome(status, answer[len(status):].strip())
    if any(answer != 'ok' for answer in answers):
        return Outcome(ERROR, f'answered {answers}')
    return Outcome()


def _time(peer, case, iterations):
    """Nanoseconds of an iteration until the last rank has its data."""
    answers = peer.ask(f'time {case.op} {case.bytes} {case.heat} {iterations}', TIME_DEADLINE)
    for answer in answers:
        if not answer.startswith('time '):
            raise PeerLost(answer)  # a rank that failed in the middle leaves the others waiting
    return max(float(answer[len('time '):]) for answer in answers)


def _scout(peer, case, effort):
    outcome = _check(peer, case)
    if outcome.status == OK:
        first = _time(peer, case, ITERATIONS_MIN)
        first = min(first, _time(peer, case, ITERATIONS_MIN if first > effort.batch_ns / 16 else 16))
        outcome.iterations = int(min(ITERATIONS_MAX, max(ITERATIONS_MIN, effort.batch_ns / first)))
        outcome.scouted = min(_time(peer, case, outcome.iterations) for _ in range(effort.scouts))
    peer.ask('free', CHECK_DEADLINE)
    return outcome


def waiting(field, ranks):
    """By label: how many cores all ranks but the last to come use together while they wait for it."""
    used = {}
    for peer in list(field.peers):
        if peer.configuration.role == ROOFLINE:
            continue
        try:
            answers = peer.ask(f'wait {WAIT_MS}', CHECK_DEADLINE)
            used[peer.configuration.label] = sum(float(answer.removeprefix('wait ')) for answer in answers)
        except (PeerLost, ValueError) as lost:
            field.lose(peer, f'waiting, {ranks} ranks', lost)
    return used


def stream(field):
    """What the machine's memory gives by STREAM's loops, GB/s; empty without the program."""
    for peer in field.peers:
        if peer.configuration.role == ROOFLINE and (answer := peer.ask('stream', TIME_DEADLINE)[0]).startswith('stream '):
            return dict(zip(('copy', 'add', 'triad'), map(float, answer.split()[1:])))
    return {}


def _chosen(field, outcomes):
    """Sluice and the machine as they are; each peer in its configuration that scouted best."""
    best = {}
    for peer in field.peers:
        configuration, outcome = peer.configuration, outcomes[peer.configuration.label]
        if outcome.status != OK:
            continue
        key = configuration.maker if configuration.role == PEER else configuration.label
        if key not in best or outcome.scouted < outcomes[best[key].configuration.label].scouted:
            best[key] = peer
    return list(best.values())


def measure(field, case, effort):
    """The outcomes by label. What is lost on the way is noted in `field`; the rest goes on."""
    outcomes = {}
    for peer in list(field.peers):
        label = peer.configuration.label
        try:
            outcomes[label] = _scout(peer, case, effort)
        except PeerLost as lost:
            outcomes[label] = Outcome(LOST, str(lost))
            field.lose(peer, case, lost)
            continue
        if outcomes[label].status in (WRONG, ERROR):
            field.notes.append(f'{label} is {outcomes[label].status} at {case}: {outcomes[label].text}')
    running = _chosen(field, outcomes)
    for round_index in range(effort.samples):
        turn = round_index % max(1, len(running))
        for peer in running[turn:] + running[:turn]:
            outcome = outcomes[peer.configuration.label]
            try:
                outcome.samples.append(_time(peer, case, outcome.iterations))
            except PeerLost as lost:
                outcomes[peer.configuration.label] = Outcome(LOST, str(lost))
                field.lose(peer, case, lost)
        running = [peer for peer in running if peer in field.peers]
    for peer in list(running):
        try:
            peer.ask('free', CHECK_DEADLINE)
        except PeerLost as lost:
            field.lose(peer, case, lost)
    return outcomes
