#!/usr/bin/env python3
"""Sluice beside other libraries on this machine:  ./dev bench peers [options]

All of them run one loop (loop.h) over buffers of one kind, in turn, sample by sample; the ratios are medians over samples that were taken
together. Exit 0: Sluice's results were right, whatever its times are.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time

import plot
import report
from configurations import ROOFLINE, all_configurations, missing
from measure import Case, Effort, Field, measure
from processes import Peer, PeerLost

OPS = ('all_reduce', 'reduce_scatter', 'all_gather', 'broadcast', 'send_receive', 'all_to_all', 'all_to_all_v')
HAVE_BLOCKS = ('reduce_scatter', 'all_gather', 'all_to_all', 'all_to_all_v')
FULL = {'sizes': '8,64,512,4K,32K,256K,2M,16M,64M', 'ops': ','.join(OPS), 'ranks': '2,4,8', 'heat': 'warm,cold', 'samples': 9,
        'batch_ms': 10.0}
QUICK = {**FULL, 'sizes': '8,4K,256K,2M', 'ops': 'all_reduce', 'ranks': '2', 'heat': 'warm', 'samples': 5, 'batch_ms': 4.0}


def parse_size(text):
    units = {'K': 1 << 10, 'M': 1 << 20}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def parse(arguments):
    parser = argparse.ArgumentParser(prog='./dev bench peers', description='Sluice beside other libraries, on this machine')
    parser.add_argument('--quick', action='store_true', help='a fast look: all-reduce, 2 ranks, four sizes, one pair of buffers')
    parser.add_argument('--ops', help=f'of {FULL["ops"]}')
    parser.add_argument('--sizes', help=f'bytes, with K or M (default {FULL["sizes"]})')
    parser.add_argument('--ranks', help=f'numbers of ranks, even (default {FULL["ranks"]})')
    parser.add_argument('--heat', help='warm (one pair of buffers), cold (rotating buffers)')
    parser.add_argument('--samples', type=int, help=f'per case and library (default {FULL["samples"]})')
    parser.add_argument('--batch-ms', type=float, help=f'about how long a sample takes (default {FULL["batch_ms"]:g})')
    parser.add_argument('--only', help='words; of the configurations, those whose name has one of them (Sluice always)')
    parser.add_argument('--output', default='build/peers', help='stem of the files: STEM.md, STEM.json, STEM.svg')
    parser.add_argument('--bin', default='build/bench/peers', help='folder of the built programs')
    options = parser.parse_args(arguments)
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    try:
        options.sizes = [parse_size(text) for text in options.sizes.split(',')]
        options.ranks = [int(text) for text in options.ranks.split(',')]
    except ValueError as error:
        parser.error(f'--sizes and --ranks take numbers: {error}')
    options.ops, options.heat = options.ops.split(','), options.heat.split(',')
    for name, known in (('ops', OPS), ('heat', ('warm', 'cold'))):
        for word in getattr(options, name):
            if word not in known:
                parser.error(f"--{name}: there is no '{word}'; there are: {', '.join(known)}")
    if any(ranks < 2 or ranks % 2 for ranks in options.ranks):
        parser.error(f'--ranks {options.ranks}: even numbers from 2 on')
    return options


def cases_of(options, ranks):
    """Operation by operation; sizes below one element per block are raised to it."""
    for op in options.ops:
        for heat in options.heat:
            least = 4 * ranks if op in HAVE_BLOCKS else 4
            for size in sorted({max(size, least) for size in options.sizes}):
                yield Case(op, ranks, heat, size)


def start(configurations, ranks, options, notes):
    field = Field()
    field.notes = notes
    for configuration in configurations:
        try:
            field.peers.append(Peer(configuration, ranks, os.path.abspath(options.bin)))
        except (PeerLost, OSError) as error:
            notes.append(f'{configuration.label} did not start with {ranks} ranks: {error}')
    return field


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    except OSError:
        return ''


def machine():
    lscpu = dict(line.split(':', 1) for line in output_of('lscpu').splitlines() if ':' in line)
    wanted = ('Model name', 'CPU(s)', 'Core(s) per socket', 'L2 cache', 'L3 cache', 'Hypervisor vendor')
    return {**{key: lscpu[key].strip() for key in wanted if key in lscpu}, 'kernel': platform.release()}


def run(options, say=print):
    """Returns rows, outcomes and facts of everything asked for."""
    everything = all_configurations()
    if options.only:
        words = options.only.split(',')
        everything = [one for one in everything if one.role in ('windows', 'any', ROOFLINE) or any(word in one.label for word in words)]
    notes, names, rows, all_outcomes = [], {}, [], []
    there = []
    for configuration in everything:
        why = missing(configuration, os.path.abspath(options.bin))
        if why:
            notes.append(f'missing: {configuration.label}: {why}')
            say(notes[-1])
        else:
            there.append(configuration)
    effort = Effort(options.samples, 2, options.batch_ms * 1e6)
    began = time.time()
    for ranks in options.ranks:
        field = start(there, ranks, options, notes)
        names.update({peer.configuration.label: peer.name for peer in field.peers})
        try:
            for case in cases_of(options, ranks):
                outcomes = measure(field, case, effort)
                rows.append(report.compare(case, outcomes, there))
                all_outcomes.append(outcomes)
                row = rows[-1]
                say(f'{time.time() - began:6.0f} s  {case}: windows {report.time_text(row.windows)}, any {report.time_text(row.any)}, '
                    f'best {report.time_text(row.best)} µs ({row.best_label or "none"})', flush=True)
        finally:
            for peer in field.peers:
                peer.close()
    facts = {'machine': machine(), 'libraries': names, 'notes': notes, 'commit': output_of('git', 'rev-parse', '--short', 'HEAD'),
             'load_average': os.getloadavg(), 'seconds': round(time.time() - began), 'samples': options.samples,
             'batch_ms': options.batch_ms, 'command': ' '.join(sys.argv[1:])}
    return rows, all_outcomes, facts, there


def main(arguments):
    options = parse(arguments)
    rows, all_outcomes, facts, configurations = run(options)
    text = report.tables(rows) + '\n' + report.summary(rows)
    if facts['notes']:
        text += '\n\nWhat did not take part:\n' + '\n'.join(f'  {note}' for note in facts['notes'])
    print('\n' + text)
    with open(options.output + '.md', 'w', encoding='utf-8') as file:
        file.write(text + '\n')
    with open(options.output + '.json', 'w', encoding='utf-8') as file:
        json.dump(report.as_json(rows, all_outcomes, facts), file, indent=1)
    with open(options.output + '.svg', 'w', encoding='utf-8') as file:
        file.write(plot.svg(rows, all_outcomes, configurations))
    print(f'\nwritten: {options.output}.md, {options.output}.json, {options.output}.svg')
    return 1 if report.sluice_failed(all_outcomes, configurations) or not rows else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
