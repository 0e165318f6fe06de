"""Size against time and against bus bandwidth, log-log, one line per library, as one SVG."""

import math
from xml.sax.saxutils import escape

from configurations import ANY, ROOFLINE, WINDOWS
from report import size_text

WIDTH, HEIGHT, LEFT, TOP, GAP = 460, 260, 70, 40, 90  # of one plot and around it
TICKS_MAX = 10  # along the sizes
COLORS = {'Sluice windows': '#0b6e99', 'Sluice any pointer': '#5bb5d5', 'Open MPI': '#c0392b', 'MPICH': '#e08e0b', 'Gloo': '#7d5fa8',
          'Memory': '#888888'}


def bus_factor(op, ranks):
    """Bytes that each rank's link has to carry, per byte of the operation."""
    if op == 'all_reduce':
        return 2 * (ranks - 1) / ranks
    return 1.0 if op in ('broadcast', 'send_receive') else (ranks - 1) / ranks


def _line_name(configuration):
    return {WINDOWS: 'Sluice windows', ANY: 'Sluice any pointer', ROOFLINE: 'Memory'}.get(configuration.role, configuration.maker)


def _lines(group, configurations):
    """Name of a line to its points (bytes, nanoseconds); a peer's is its configuration that was chosen at each size."""
    lines = {}
    for case, outcomes in group:
        for configuration in configurations:
            outcome = outcomes.get(configuration.label)
            if outcome and outcome.status == 'ok' and outcome.samples:
                lines.setdefault(_line_name(configuration), []).append((case.bytes, outcome.median))
    return lines


class _Axis:
    """Logarithms of values to places."""

    def __init__(self, values, base, begin, end):
        self._low = math.floor(math.log(min(values), base) + 1e-9)
        self._high = max(self._low + 1, math.ceil(math.log(max(values), base) - 1e-9))
        self._base, self._begin, self._end = base, begin, end

    def at(self, value):
        part = (math.log(value, self._base) - self._low) / (self._high - self._low)
        return self._begin + part * (self._end - self._begin)

    def ticks(self):
        return [self._base ** power for power in range(self._low, self._high + 1)]


def _short(value):
    return f'{value:g}' if 1e-3 <= value < 1e5 else f'{value:.0e}'


def _plot(lines, left, top, title, unit):
    """One frame with its lines, whose points are (bytes, value)."""
    points = [point for line in lines.values() for point in line]
    x = _Axis([size for size, _ in points], 2, left, left + WIDTH)
    y = _Axis([value for _, value in points], 10, top + HEIGHT, top)
    out = [f'<text x="{left}" y="{top - 8}" class="title">{escape(title)}</text>',
           f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>']
    sizes = sorted({size for size, _ in points})
    for tick in sizes[::math.ceil(len(sizes) / TICKS_MAX)]:
        out.append(f'<path d="M{x.at(tick):.1f} {top}v{HEIGHT}" class="grid"/>'
                   f'<text x="{x.at(tick):.1f}" y="{top + HEIGHT + 14}" text-anchor="middle">{size_text(tick)}</text>')
    for tick in y.ticks():
        out.append(f'<path d="M{left} {y.at(tick):.1f}h{WIDTH}" class="grid"/>'
                   f'<text x="{left - 6}" y="{y.at(tick) + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
    out.append(f'<text x="{left - 52}" y="{top + HEIGHT / 2}" transform="rotate(-90 {left - 52} {top + HEIGHT / 2})" '
               f'text-anchor="middle">{escape(unit)}</text>')
    for name, line in lines.items():
        color = COLORS.get(name, '#444444')
        path = 'M' + 'L'.join(f'{x.at(size):.1f} {y.at(value):.1f}' for size, value in sorted(line))
        dashes = ' stroke-dasharray="5 3"' if name == 'Memory' else ''
        out.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"{dashes}><title>{escape(name)}</title></path>')
        out += [f'<circle cx="{x.at(size):.1f}" cy="{y.at(value):.1f}" r="2.5" fill="{color}"/>' for size, value in line]
    return out


def _legend(names, top):
    out, left = [], LEFT
    for name in names:
        out.append(f'<rect x="{left}" y="{top - 9}" width="18" height="4" fill="{COLORS.get(name, "#444444")}"/>'
                   f'<text x="{left + 24}" y="{top - 3}">{escape("moved without synchronisation" if name == "Memory" else name)}</text>')
        left += 40 + 8 * (30 if name == 'Memory' else len(name))
    return out


def svg(rows, all_outcomes, configurations):
    groups = {}
    for row, outcomes in zip(rows, all_outcomes):
        groups.setdefault((row.case.op, row.case.ranks, row.case.heat), []).append((row.case, outcomes))
    body, top, names = [], TOP + 30, {}
    for (op, ranks, heat), group in groups.items():
        lines = _lines(group, configurations)
        if not lines:
            continue
        names.update(dict.fromkeys(lines))
        title = f'{op}, {ranks} ranks, {heat} buffers'
        times = {name: [(size, ns / 1000) for size, ns in line] for name, line in lines.items()}
        rates = {name: [(size, bus_factor(op, ranks) * size / ns) for size, ns in line] for name, line in lines.items()}
        body += _plot(times, LEFT, top, title, 'µs')
        body += _plot(rates, LEFT + WIDTH + GAP, top, title, 'bus bandwidth, GB/s')
        top += HEIGHT + 70
    width = LEFT + 2 * WIDTH + GAP + 30
    style = ('text{font:11px sans-serif;fill:#333}.title{font-size:13px;font-weight:bold}.frame{fill:none;stroke:#666}'
             '.grid{stroke:#ddd;fill:none}')
    return '\n'.join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}">',
                      f'<style>{style}</style><rect width="{width}" height="{top}" fill="#fff"/>', *_legend(names, TOP), *body,
                      '</svg>', ''])
