"""What Sluice has to reach: its time as a part of the best peer's, and as a multiple of what memory allows."""

from configurations import ANY, WINDOWS

KI, MI = 1 << 10, 1 << 20
EVER = 1 << 62

# (operation, ranks, memory): at most `part` of the best peer's time from the first to the second number of bytes. The first
# row that holds counts.
PARTS = (
    ('all_reduce', (2,), WINDOWS, 0, 512, 0.8),
    ('all_reduce', (2,), WINDOWS, 4 * KI, 4 * KI, 1 / 8),
    ('all_reduce', (2,), WINDOWS, 32 * KI, 32 * KI, 1 / 6),
    ('all_reduce', (2,), WINDOWS, 256 * KI, 256 * KI, 1 / 5),
    ('all_reduce', (2,), WINDOWS, 2 * MI, 2 * MI, 1 / 3.5),
    ('all_reduce', (2,), WINDOWS, 16 * MI, 64 * MI, 1 / 4),
    ('all_reduce', (2,), ANY, 0, 512, 1.0),
    ('all_reduce', (2,), ANY, 4 * KI, 1 * MI, 1 / 2),
    ('all_reduce', (2,), ANY, 1 * MI + 1, EVER, 0.7),
    ('*', (4, 8), '*', 0, EVER, 0.6),
    ('reduce_scatter', (2,), '*', 32 * KI, EVER, 1 / 3),
    ('all_to_all', (2,), '*', 32 * KI, EVER, 1 / 2),
    ('all_to_all_v', (2,), '*', 32 * KI, EVER, 1 / 2),
    ('all_gather', (2,), '*', 4 * KI, 4 * MI, 0.6),
    ('broadcast', (2,), '*', 4 * KI, 4 * MI, 0.6),
    ('send_receive', (2,), '*', 4 * KI, 4 * MI, 0.6),
    ('*', (2,), '*', 0, 1 * KI - 1, 1.15),
    ('*', (2,), '*', 1 * KI, EVER, 1.0),
)

ROOFLINE_FROM = 256 * KI  # bytes
ROOFLINE_ALL_REDUCE = 1 / 0.85  # of the time of the same bytes moved without any synchronisation
ROOFLINE_COPIES = 1.15

WAITING_RANKS = 8
WAITING_CORES = 0.05  # all of them together


def part(op, ranks, memory, size):
    """The largest ratio to the best peer that is good enough, or None."""
    for row_op, row_ranks, row_memory, first, last, value in PARTS:
        if row_op in ('*', op) and ranks in row_ranks and row_memory in ('*', memory) and first <= size <= last:
            return value
    return None


def multiple(op, ranks, size):
    """The largest ratio to the roofline that is good enough with windows, or None."""
    if ranks != 2 or size < ROOFLINE_FROM:
        return None
    return ROOFLINE_ALL_REDUCE if op == 'all_reduce' else ROOFLINE_COPIES
