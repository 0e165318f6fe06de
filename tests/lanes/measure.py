#!/usr/bin/env python3
"""An urgent operation between hosts, alone and beside a large one:  ./dev bench lanes [options]

    alone    on its lane, nothing else
    shared   beside an endless 64 MiB all-reduce, both on one lane
    apart    beside the same, each on its own lane: urgent and bulk

The hosts are namespaces of this machine (tests/support/hosts), their links shaped to --rate. Where there are more ranks than cores each host
has its own share of the cores, so that the libraries see that cores are short. Each run takes all three in turn, and Open MPI
(two communicators, non-blocking) and Gloo (two contexts, two threads) do the same work in the same hosts. Figures are medians over runs.
Exit 0: everything ran and every result was right; 77: no hosts can be made here.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))

import hosts  # noqa: E402  (from the folder above)

from figures import bulk_kept, table  # noqa: E402

WAYS = ('alone', 'shared', 'apart')
BULK = '64M'
BULK_BYTES = 64 << 20
PEER_ITERATIONS_MAX = 60
OPERATIONS = {'all_reduce': 64 << 10, 'alltoall': 256 << 10}
SENT = {'all_reduce': 1, 'alltoall': 2}  # of two ranks each sends all of it, or every second part


def parse(arguments):
    parser = argparse.ArgumentParser(prog='./dev bench lanes', description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build', help='the build folder')
    parser.add_argument('--rate', default='1gbit', help='of each link')
    parser.add_argument('--hosts', type=int, default=2)
    parser.add_argument('--ranks-per-host', default='1,2', help='layouts, one after another')
    parser.add_argument('--ops', default=','.join(OPERATIONS), help=f'of {",".join(OPERATIONS)}')
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--iterations', type=int, default=1000, help='of ours; enough for several of the large operation')
    parser.add_argument('--gap-us', type=int, default=5000, help='pause before each iteration')
    parser.add_argument('--libraries', default='sluice,openmpi,gloo')
    parser.add_argument('--congestion', default='reno', help='TCP congestion control of every host, for all libraries (%(default)s)')
    parser.add_argument('--json', help='also write every sample to FILE')
    options = parser.parse_args(arguments)
    for field, known in (('ops', OPERATIONS), ('libraries', LIBRARIES)):
        words = getattr(options, field).split(',')
        if unknown := [word for word in words if word not in known]:
            parser.error(f"--{field}: there is no '{unknown[0]}'; there are: {', '.join(known)}")
        setattr(options, field, words)
    options.layouts = [int(word) for word in options.ranks_per_host.split(',')]
    return options


def check(ended):
    for one in ended if isinstance(ended, list) else [ended]:
        if one.code != 0:
            raise RuntimeError(f'host {one.host} rank {one.rank} ended with {one.code}: {one.output[-1500:]}')


def sluice(here, options, per_host, operation, way):
    """One run of our own program."""
    lanes = {'alone': ['--lane', 'tp:urgent'],
             'shared': ['--lane', 'one:normal', '--beside', f'all_reduce:{BULK}:one:normal'],
             'apart': ['--lane', 'tp:urgent', '--beside', f'all_reduce:{BULK}:dp:bulk']}[way]
    size = str(OPERATIONS[operation])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'run.json')
        check(here.run_job([f'{options.build}/tools/{operation}_perf', '-b', size, '-e', size, '-n', options.iterations, '-w', '5', '-c', '1',
                            '--gap', f'{options.gap_us}us', '-J', path, *lanes], per_host, deadline=300))
        with open(path, encoding='utf-8') as file:
            row = json.load(file)['results'][0]
    spread, beside = row['out_of_place_per_iter'], row['out_of_place'].get('beside', [{}])[0]
    return {'p50_us': spread['p50_us'], 'p99_us': spread['p99_us'], 'p999_us': spread['p99_9_us'],
            'bulk_bytes_per_second': (beside.get('alg_bw') or 0) * 1e9}


def task_of(options, operation, way):
    """An iteration of theirs may wait for a whole large operation, so there are fewer."""
    return [operation, OPERATIONS[operation], 0 if way == 'alone' else BULK_BYTES, min(options.iterations, PEER_ITERATIONS_MAX), options.gap_us]


def last_json(output):
    return json.loads([line for line in output.splitlines() if line.startswith('{')][-1])


def openmpi(here, options, per_host, operation, way):
    ended = here.run_open_mpi([f'{options.build}/bench/lanes/openmpi_two_lanes', *task_of(options, operation, way)], per_host, deadline=300)
    check(ended)
    return last_json(ended.output)


def gloo(here, options, per_host, operation, way):
    with tempfile.TemporaryDirectory() as folder:
        places = hosts.rank_places(here, per_host)
        outputs = []
        for host, variables in places:
            output = tempfile.TemporaryFile()
            argv = [f'{options.build}/bench/lanes/gloo_two_lanes', *task_of(options, operation, way), folder, variables['RANK'],
                    len(places), here.address(host)]
            outputs.append((here.start(host, argv, stdout=output, stderr=output), output))
        for rank, (process, output) in enumerate(outputs):
            code = process.wait(300)
            output.seek(0)
            said = output.read().decode(errors='replace')
            if code != 0:
                raise RuntimeError(f'gloo: rank {rank} ended with {code}: {said[-1500:]}')
            if rank == 0:
                result = last_json(said)
        return result


LIBRARIES = {'sluice': sluice, 'openmpi': openmpi, 'gloo': gloo}


def missing(options, library):
    program = {'openmpi': 'openmpi_two_lanes', 'gloo': 'gloo_two_lanes'}.get(library)
    if program and not os.access(f'{options.build}/bench/lanes/{program}', os.X_OK):
        return f'{library} is missing: {program} was not built'
    if library == 'openmpi':
        return hosts.missing_open_mpi()
    return None


def bulk_alone(here, options, per_host):
    """Bytes per second of the large operation with nothing beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'run.json')
        check(here.run_job([f'{options.build}/tools/all_reduce_perf', '-b', BULK, '-e', BULK, '-n', '4', '-w', '0', '-c', '0', '-J', path],
                           per_host, deadline=300))
        with open(path, encoding='utf-8') as file:
            return json.load(file)['results'][0]['out_of_place']['alg_bw'] * 1e9


def measure_case(here, options, per_host, operation, libraries):
    samples = {(library, way): [] for library in libraries for way in WAYS if library == 'sluice' or way != 'apart'}
    for run in range(options.runs):
        for library, way in samples:
            samples[library, way].append(LIBRARIES[library](here, options, per_host, operation, way))
            print(f'  run {run + 1}: {library} {way}: ' + ', '.join(f'{name} {value:.4g}' for name, value in samples[library, way][-1].items()),
                  flush=True)
    return {key: {name: statistics.median(one[name] for one in all_of) for name in all_of[0]} for key, all_of in samples.items()}, samples


def main(arguments):
    options = parse(arguments)
    if why := hosts.missing():
        print(why)
        return 77
    libraries = []
    for library in options.libraries:
        if why := missing(options, library):
            print(why)
        else:
            libraries.append(library)
    record, text = [], ''
    for per_host in options.layouts:
        crowded = options.hosts * per_host > len(os.sched_getaffinity(0))
        with hosts.Hosts(options.hosts, rate=options.rate, congestion=options.congestion, own_cores=crowded) as here:
            alone = statistics.median(bulk_alone(here, options, per_host) for _ in range(3))
            for operation in options.ops:
                title = f'{operation} of {OPERATIONS[operation] >> 10} KiB, {options.hosts} hosts, {per_host} ranks each, {options.rate}'
                print(title, flush=True)
                medians, samples = measure_case(here, options, per_host, operation, libraries)
                sent = OPERATIONS[operation] // SENT[operation] if per_host == 1 and options.hosts == 2 else None
                kept = bulk_kept(medians, alone, sent, options.gap_us)
                record.append({'case': title, 'bulk_alone_bytes_per_second': alone, 'bulk_kept': kept,
                               'samples': [{'library': library, 'way': way, 'runs': all_of} for (library, way), all_of in samples.items()]})
                text += table(title, medians, alone, kept)
    print('\n' + text)
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(record, file, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
