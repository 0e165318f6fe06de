#!/usr/bin/env python3
"""A made-up library in place of one rank of a real one:  fake_peer.py DIRECTORY RANK RANKS BEHAVIOUR NANOSECONDS

    BEHAVIOUR  good; wrong (its results); dies (at its fifth measurement); fails (an error there); silent (no answer there);
               sum_only (it has all_reduce alone); never_ready
"""

import sys
import time

MEASUREMENTS = 5


def answer(words, behaviour, nanoseconds, timed, rank):
    verb = words[0]
    if verb == 'wait':
        return 'wait 0.25'
    if verb == 'stream':
        return 'stream 30 20 10'
    if verb == 'check' and behaviour == 'sum_only' and words[1] != 'all_reduce':
        return f'unsupported Fake has no {words[1]}'
    if verb == 'check' and behaviour == 'wrong' and rank == 1:
        return 'wrong rank 1, element 3 of 8 is 4, not 7'
    if verb == 'time' and timed == MEASUREMENTS:
        if behaviour == 'dies':
            print('a made-up crash', flush=True)
            sys.exit(7)
        if behaviour == 'fails':
            return 'error a made-up failure'
        if behaviour == 'silent':
            time.sleep(60)
    return f'time {nanoseconds * (1 + rank)}' if verb == 'time' else 'ok'


def main(directory, rank, ranks, behaviour, nanoseconds):
    if behaviour == 'never_ready':
        sys.exit('made up, and not in the mood')
    stem, timed = f'{directory}/{rank}', 0
    with open(stem + '.commands', encoding='ascii') as commands, open(stem + '.answers', 'w', encoding='ascii', buffering=1) as answers:
        print(f'ready Fake of {ranks}', file=answers)
        for line in commands:
            timed += line.startswith('time')
            print(answer(line.split(), behaviour, float(nanoseconds), timed, int(rank)), file=answers)


if __name__ == '__main__':
    main(*sys.argv[1:])
