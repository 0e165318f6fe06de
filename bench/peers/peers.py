#!/usr/bin/env python3
"""Sluice beside other libraries on this machine:  ./dev bench peers [options]

All of them run one loop (loop.h) over buffers of one kind, in turn, sample by sample; the ratios are medians over samples that were taken
together. Exit 0: Sluice's results were right, whatever its times are.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time

import plot
import report
from configurations import ANY, ROOFLINE, WINDOWS, all_configurations, missing
from measure import Case, Effort, Field, measure, stream, waiting
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
    parser.add_argument('--document', help='a document whose results are replaced by these (docs/performance.md)')
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


def start(field, configurations, ranks, options):
    for configuration in configurations:
        try:
            field.peers.append(Peer(configuration, ranks, os.path.abspath(options.bin)))
        except (PeerLost, OSError) as error:
            field.notes.append(f'{configuration.label} did not start with {ranks} ranks: {error}')


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    except OSError:
        return ''


def machine():
    lscpu = dict(line.split(':', 1) for line in output_of('lscpu').splitlines() if ':' in line)
    wanted = ('Model name', 'CPU(s)', 'Core(s) per socket', 'L2 cache', 'L3 cache', 'Hypervisor vendor')
    return {**{key: lscpu[key].strip() for key in wanted if key in lscpu}, 'kernel': platform.release()}


def wanted(options):
    words = options.only.split(',') if options.only else ['']
    return [one for one in all_configurations()
            if one.role in (WINDOWS, ANY, ROOFLINE) or any(word in one.label for word in words)]


def run(options, everything, say):
    """Returns rows, their outcomes, facts, and the configurations that are there, of everything asked for."""
    began, load = time.time(), os.getloadavg()[0]
    facts = {'command': ' '.join(sys.argv[1:]), 'date': time.strftime('%Y-%m-%d'), 'machine': machine(),
             'commit': output_of('git', 'rev-parse', '--short', 'HEAD'),
             'samples': options.samples, 'batch_ms': options.batch_ms, 'load_before': load, 'libraries': {}, 'notes': [],
             'stream': {}, 'waiting': {}}
    notes, rows, all_outcomes, there = facts['notes'], [], [], []
    if load > 0.5:
        notes.append(f'the machine was busy with something else: load average {load:.1f} before the first measurement')
    for configuration in everything:
        if why := missing(configuration, os.path.abspath(options.bin)):
            notes.append(f'missing: {configuration.label}: {why}')
        else:
            there.append(configuration)
    effort = Effort(options.samples, 2, options.batch_ms * 1e6)
    try:
        for ranks in options.ranks:
            with contextlib.closing(run_ranks(ranks, there, options, effort, facts)) as cases:
                for case, outcomes in cases:
                    all_outcomes.append(outcomes)
                    rows.append(report.compare(case, outcomes, everything))
                    say(f'{time.time() - began:5.0f} s  {report.line(rows[-1])}')
    except KeyboardInterrupt:
        notes.append('the run was interrupted; this is what was measured until then')
    facts['seconds'] = round(time.time() - began)
    return rows, all_outcomes, facts, there


def run_ranks(ranks, there, options, effort, facts):
    """Cases and their outcomes, one after another, all on the same processes."""
    field = Field(facts['notes'])
    try:
        start(field, there, ranks, options)
        facts['libraries'].update({peer.configuration.label: peer.name for peer in field.peers})
        facts['stream'] = facts['stream'] or stream(field)
        facts['waiting'][ranks] = waiting(field, ranks)
        for case in cases_of(options, ranks):
            yield case, measure(field, case, effort)
    finally:
        for peer in field.peers:
            peer.close()


def write(stem, text, results, picture):
    for ending, content in (('.md', text + '\n'), ('.json', json.dumps(results, indent=1) + '\n'), ('.svg', picture)):
        with open(stem + ending, 'w', encoding='utf-8') as file:
            file.write(content)


def main(arguments, everything=None):
    options = parse(arguments)
    rows, all_outcomes, facts, there = run(options, wanted(options) if everything is None else everything,
                                           lambda line: print(line, flush=True))
    text = report.text(rows, facts)
    print('\n' + text)
    write(options.output, text, report.as_json(rows, all_outcomes, facts), plot.svg(rows, all_outcomes, there))
    if options.document:
        with open(options.document, encoding='utf-8') as file:
            before = file.read()
        with open(options.document, 'w', encoding='utf-8') as file:
            file.write(report.document(before, rows, facts))
    print(f'\nwritten: {options.output}.md, {options.output}.json, {options.output}.svg')
    return 1 if report.sluice_failed(rows, all_outcomes, there) else 0


def interrupt(*_):
    raise KeyboardInterrupt


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, interrupt)
    sys.exit(main(sys.argv[1:]))
