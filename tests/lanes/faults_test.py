#!/usr/bin/env python3
"""A rank that dies, stalls or is cut off in the middle of mixed traffic:  faults_test.py BUILD [RUNS]

Three hosts, a rank each, an urgent operation beside a large one. Every other rank must end with an error within its deadline, and
`sluice trace --diagnose` must name the culprit from what they left. Exit 0: so it was, every time; 77: no hosts can be made here.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))

import hosts  # noqa: E402  (from the folder above)

HOSTS = 3
CULPRIT = 1
BEGIN = 1.5  # seconds of traffic before the fault
SLUICE_DEADLINE = 3.0  # seconds without progress
END_DEADLINE = 12.0  # seconds from the fault to the end of all others
FAULTS = {'kill': lambda here, ranks: here.kill(ranks[CULPRIT].process), 'cut': lambda here, ranks: here.cut(CULPRIT),
          'stall': lambda here, ranks: here.stall(ranks[CULPRIT].process)}


def run(here, build, fault):
    """What is wrong, or an empty text; and how long the others took to end."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [f'{build}/tools/all_reduce_perf', '-b', '64K', '-e', '64K', '-n', '100000', '-c', '0', '--gap', '1ms', '--lane', 'tp:urgent',
                '--beside', 'all_reduce:8M:dp:bulk']
        env = {'SLUICE_TRACE': folder, 'SLUICE_DEADLINE': f'{SLUICE_DEADLINE:g}s'}
        with here.job(argv, 1, env) as ranks:
            time.sleep(BEGIN)
            if early := [one.rank for one in ranks if one.process.poll() is not None]:
                return f'rank {early[0]} ended before the fault: {ranks[early[0]].output()[-500:]}', 0
            FAULTS[fault](here, ranks)
            begin = time.monotonic()
            others = [one for one in ranks if one.rank != CULPRIT]
            try:
                ended = here.wait(others, END_DEADLINE)
            except hosts.JobTimeout as late:
                return str(late), END_DEADLINE
            finally:
                here.mend(CULPRIT)
            took = time.monotonic() - begin
        if good := [one.rank for one in ended if one.code == 0]:
            return f'rank {good[0]} ended without an error', took
        jobs = os.listdir(folder)
        if not jobs:
            return f'no trace was written: {ended[0].output[-800:]}', took
        said = subprocess.run([f'{build}/tools/sluice', 'trace', '--diagnose', '--json', os.path.join(folder, jobs[0])], capture_output=True, text=True,
                              check=False)
        if said.returncode != 1:
            return f'sluice trace ended with {said.returncode}: {said.stderr}', took
        found = json.loads(said.stdout)['diagnosis']
        return ('' if found['culprit'] == CULPRIT else f'blamed {found["culprit"]}: {found["text"]} {found["evidence"]}'), took


def main(build, runs):
    if why := hosts.missing():
        print(why)
        return 77
    bad = 0
    for fault in FAULTS:
        times = []
        with hosts.Hosts(HOSTS, congestion='reno') as here:
            for _ in range(runs):
                wrong, took = run(here, build, fault)
                times.append(took)
                if wrong:
                    bad += 1
                    print(f'{fault}: {wrong}', flush=True)
        print(f'{fault}: {runs} runs, all others ended within {max(times):.1f} s', flush=True)
    print('every culprit was named' if bad == 0 else f'{bad} runs were wrong')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
