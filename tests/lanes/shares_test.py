#!/usr/bin/env python3
"""What lanes get of a link between two hosts:  shares_test.py BUILD [--strict]

    weights    three lanes of one priority, 1:2:4, all with more to send than the link carries
    ceiling    a lane with max=RATE, alone
    guarantee  a less urgent lane with min=RATE, while a more urgent one sends all it can
    marks      what each priority's packets say in their DSCP, read from the wire

--strict asks for what docs/performance.md promises; without it a busy machine is forgiven three times as much. Exit 77: no hosts can be made here.
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))

import hosts  # noqa: E402  (from the folder above)

MB = 1 << 20
MARKS = {'urgent': 34, 'normal': 0, 'bulk': 1}  # AF41, DF, LE


def run(here, build, *words):
    """Bytes per second of what is measured, and of each that runs beside."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'run.json')
        for one in here.run_job([f'{build}/tools/all_reduce_perf', '-w', '1', '-c', '1', '-J', path, *map(str, words)], 1, deadline=120):
            if one.code != 0:
                raise RuntimeError(f'host {one.host} rank {one.rank} ended with {one.code}: {one.output[-1500:]}')
        with open(path, encoding='utf-8') as file:
            half = json.load(file)['results'][0]['out_of_place']
    return [half['alg_bw'] * 1e9] + [(one['alg_bw'] or 0) * 1e9 for one in half.get('beside', [])]


def weights(here, build, slack):
    rates = run(here, build, '-b', '2M', '-e', '2M', '-n', '60', '--lane', 'a:bulk:1', '--beside', 'all_reduce:4M:b:bulk:2', '--beside',
                'all_reduce:8M:c:bulk:4')
    parts = [rate / sum(rates) for rate in rates]
    off = max(abs(part * 7 / weight - 1) for part, weight in zip(parts, (1, 2, 4)))
    print(f'weights 1:2:4: {parts[0]:.3f} {parts[1]:.3f} {parts[2]:.3f} of {sum(rates) / 1e6:.0f} MB/s, at most {off:.1%} off')
    return off <= 0.05 * slack


def ceiling(here, build, slack):
    wanted = 20 * MB
    rate = run(here, build, '-b', '8M', '-e', '8M', '-n', '6', '--lane', 'a:bulk:1:max=20M')[0]
    print(f'ceiling of {wanted / 1e6:.2f} MB/s: {rate / 1e6:.2f}, {rate / wanted - 1:+.1%}')
    return abs(rate / wanted - 1) <= 0.03 * slack


def guarantee(here, build, slack):
    wanted = 10 * MB
    flood, rate = run(here, build, '-b', '4M', '-e', '4M', '-n', '60', '--lane', 'tp:urgent', '--beside', 'all_reduce:1M:dp:bulk:1:min=10M')
    print(f'guarantee of {wanted / 1e6:.2f} MB/s beside {flood / 1e6:.0f} MB/s of a more urgent lane: {rate / 1e6:.2f}')
    return rate >= wanted * (1 - 0.05 * slack)


def marks(here, build, _):
    with here.capture(0) as packets:
        run(here, build, '-b', '64K', '-e', '64K', '-n', '50', '--lane', 'tp:urgent', '--beside', 'all_reduce:1M:dp:bulk')
    seen = packets.marks()
    print('bytes by DSCP: ' + ', '.join(f'{dscp}: {count}' for dscp, count in sorted(seen.items())))
    least = {'urgent': 50 * (64 << 10), 'normal': 1, 'bulk': MB}  # bytes
    return all(seen.get(mark, 0) >= least[lane] for lane, mark in MARKS.items())


def main(build, strict):
    if why := hosts.missing():
        print(why)
        return 77
    bad = []
    with hosts.Hosts(2, congestion='reno') as here:
        for check in (weights, ceiling, guarantee, marks):
            if not check(here, build, 1 if strict else 3):
                bad.append(check.__name__)
    print('all as promised' if not bad else f'not as promised: {", ".join(bad)}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], '--strict' in sys.argv))
