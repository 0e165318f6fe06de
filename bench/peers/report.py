"""Tables for people and JSON for programs, from what was measured."""

import dataclasses

import targets
from configurations import ANY, PEER, ROOFLINE, WINDOWS
from measure import OK, UNSUPPORTED, paired_ratio


@dataclasses.dataclass
class Row:
    """One case, compared."""
    case: object
    windows: object = None  # outcomes, or None where there is none that counts
    any: object = None
    best: object = None
    best_label: str = ''
    roofline: object = None
    troubles: tuple = ()  # 'LABEL: STATUS' of what was expected to take part

    def ratio(self, memory):
        """Sluice's time as a part of the best peer's."""
        mine = self.windows if memory == WINDOWS else self.any
        return paired_ratio(mine.samples, self.best.samples) if mine and self.best else None

    def roofline_ratio(self):
        return paired_ratio(self.windows.samples, self.roofline.samples) if self.windows and self.roofline else None

    def part(self, memory):
        return targets.part(self.case.op, self.case.ranks, memory, self.case.bytes)

    def verdict(self, memory):
        return _verdict(self.ratio(memory), self.part(memory))

    def roofline_verdict(self):
        return _verdict(self.roofline_ratio(), targets.multiple(self.case.op, self.case.ranks, self.case.bytes))


def _verdict(ratio, limit):
    """'yes', 'NO', or '' without a target. What could not be measured has not been reached."""
    if limit is None:
        return ''
    return 'yes' if ratio is not None and ratio <= limit else 'NO'


def compare(case, outcomes, configurations):
    """`configurations`: all that are wanted; a library of which none took part is named in the row."""
    row = Row(case)
    took_part = {configuration.maker for configuration in configurations if configuration.label in outcomes}
    troubles = [f'{library}: missing' for library in dict.fromkeys(configuration.maker for configuration in configurations)
                if library not in took_part]
    for configuration in configurations:
        outcome = outcomes.get(configuration.label)
        if outcome is None or outcome.status == UNSUPPORTED:
            continue
        if outcome.status != OK:
            troubles.append(f'{configuration.label}: {outcome.status}')
        elif not outcome.samples:
            continue  # another configuration of this library was better
        elif configuration.role == WINDOWS:
            row.windows = outcome
        elif configuration.role == ANY:
            row.any = outcome
        elif configuration.role == ROOFLINE:
            row.roofline = outcome
        elif configuration.role == PEER and (row.best is None or outcome.median < row.best.median):
            row.best, row.best_label = outcome, configuration.label
    row.troubles = tuple(troubles)
    return row


def size_text(size):
    for unit, letter in ((1 << 20, ' MiB'), (1 << 10, ' KiB')):
        if size >= unit and size % unit == 0:
            return f'{size // unit}{letter}'
    return f'{size} B'


def time_text(outcome):
    """Microseconds, three digits."""
    return '-' if outcome is None else f'{outcome.median / 1000:.3g}' if outcome.median < 1e6 else f'{outcome.median / 1000:,.0f}'


def _number(value):
    return '-' if value is None else f'{value:.2f}' if value >= 0.1 else f'{value:.3f}'


HEAD = ('bytes', 'windows µs', 'any µs', 'best peer µs', 'which', 'windows/best', 'target', 'any/best', 'target',
        'memory µs', 'windows/memory')


def _cells(row):
    def against(memory):
        limit = row.part(memory)
        return _number(row.ratio(memory)), '' if limit is None else f'{_number(limit)} {row.verdict(memory)}'

    trouble = f' [{"; ".join(row.troubles)}]' if row.troubles else ''
    reached = row.roofline_verdict()
    return (size_text(row.case.bytes), time_text(row.windows), time_text(row.any), time_text(row.best),
            (row.best_label or 'none') + trouble, *against(WINDOWS), *against(ANY), time_text(row.roofline),
            _number(row.roofline_ratio()) + (f' {reached}' if reached else ''))


def tables(rows):
    """Markdown, one table for each operation, number of ranks and heat, in the order in which they come."""
    groups = {}
    for row in rows:
        groups.setdefault((row.case.op, row.case.ranks, row.case.heat), []).append(_cells(row))
    text = []
    for (op, ranks, heat), lines in groups.items():
        widths = [max(len(line[i]) for line in [HEAD, *lines]) for i in range(len(HEAD))]
        text.append(f'{op}, {ranks} ranks, {heat} buffers\n')
        for line in (HEAD, tuple('-' * width for width in widths), *lines):
            text.append('| ' + ' | '.join(cell.ljust(width) for cell, width in zip(line, widths)) + ' |')
        text.append('')
    return '\n'.join(text)


def line(row):
    return (f'{row.case}: windows {time_text(row.windows)}, any {time_text(row.any)}, best peer {time_text(row.best)} µs '
            f'({row.best_label or "none"})' + (f' [{"; ".join(row.troubles)}]' if row.troubles else ''))


def _judged(rows, facts):
    """(where, what, value, limit, verdict) of everything that has a target."""
    for row in rows:
        case = row.case
        where = f'{case.op}, {case.ranks} ranks, {case.heat}, {size_text(case.bytes)}'
        for memory in (WINDOWS, ANY):
            yield where, f'{memory}/best', row.ratio(memory), row.part(memory), row.verdict(memory)
        multiple = targets.multiple(case.op, case.ranks, case.bytes)
        yield where, 'windows/memory', row.roofline_ratio(), multiple, row.roofline_verdict()
    for ranks, used in facts['waiting'].items():
        for label, cores in used.items():
            if label.startswith('Sluice') and ranks >= targets.WAITING_RANKS:
                yield f'{ranks} waiting ranks', f'cores used, {label}', cores, targets.WAITING_CORES, _verdict(cores, targets.WAITING_CORES)


def summary(rows, facts):
    """How many targets were reached, and each that was not."""
    judged = [one for one in _judged(rows, facts) if one[-1]]
    lines = [f'{sum(one[-1] == "yes" for one in judged)} of {len(judged)} targets reached']
    lines += [f'  missed: {where}: {what} {_number(value)}, target {_number(limit)}'
              for where, what, value, limit, verdict in judged if verdict == 'NO']
    return '\n'.join(lines)


def _roofline_rate(rows):
    """What the roofline moves in the largest all_reduce, to be held against STREAM: every rank's input read and output written once."""
    rows = [row for row in rows if row.case.op == 'all_reduce' and row.roofline]
    if not rows:
        return ''
    row = max(rows, key=lambda row: row.case.bytes)
    rate = 2 * row.case.ranks * row.case.bytes / row.roofline.median
    return f'; memory, all_reduce of {size_text(row.case.bytes)} with {row.case.ranks} ranks, {row.case.heat}: {rate:.1f} GB/s'


def text(rows, facts, each_miss=True):
    """Everything, for people. Without `each_miss` the misses are counted and seen in the tables alone."""
    parts = [', '.join(f'{key}: {value}' for key, value in facts['machine'].items()) + '\n', tables(rows)]
    if facts['stream']:
        parts.append('STREAM, all cores: ' + ', '.join(f'{loop} {rate:.1f} GB/s' for loop, rate in facts['stream'].items()) +
                     _roofline_rate(rows) + '\n')
    for ranks, used in facts['waiting'].items():
        parts.append(f'{ranks} ranks of which {ranks - 1} wait, cores used: ' +
                     ', '.join(f'{label} {cores:.2f}' for label, cores in used.items()) + '\n')
    parts.append(summary(rows, facts) if each_miss else summary(rows, facts).splitlines()[0])
    if facts['notes']:
        parts.append('\nTo be known:\n\n' + '\n'.join(f'- {note}' for note in facts['notes']))
    return '\n'.join(parts)


MARK = '<!-- What follows is written by `./dev bench peers --document FILE`. -->\n'


def document(before, rows, facts):
    """The text of a document whose end, from MARK on, is replaced by these results."""
    head = before.partition(MARK)[0]
    how = f'Measured {facts["date"]}, commit {facts["commit"]}, {facts["samples"]} samples of about {facts["batch_ms"]:g} ms.'
    return f'{head}{MARK}\n{how}\n\n{text(rows, facts, each_miss=False)}\n'


def as_json(rows, all_outcomes, facts):
    cases = []
    for row, outcomes in zip(rows, all_outcomes):
        cases.append({**dataclasses.asdict(row.case), 'best_peer': row.best_label or None,
                      'windows_to_best': row.ratio(WINDOWS), 'any_to_best': row.ratio(ANY),
                      'windows_to_memory': row.roofline_ratio(),
                      'target': {WINDOWS: row.part(WINDOWS), ANY: row.part(ANY)},
                      'reached': {WINDOWS: row.verdict(WINDOWS), ANY: row.verdict(ANY), ROOFLINE: row.roofline_verdict()},
                      'results': {label: {'status': outcome.status, 'text': outcome.text, 'iterations': outcome.iterations,
                                          'scouted_ns': None if outcome.scouted == float('inf') else outcome.scouted,
                                          'samples_ns': outcome.samples} for label, outcome in outcomes.items()}})
    return {'facts': facts, 'cases': cases}


def sluice_failed(rows, all_outcomes, there):
    """Whether Sluice was not measured, or gave a wrong result, an error or no answer."""
    mine = [configuration.label for configuration in there if configuration.role in (WINDOWS, ANY)]
    return not rows or not mine or any(label not in outcomes or outcomes[label].status not in (OK, UNSUPPORTED)
                                       for outcomes in all_outcomes for label in mine)
