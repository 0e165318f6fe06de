"""What the samples of measure.py say: ratios and a table."""


def bulk_kept(medians, alone, sent_bytes, gap_us):
    """The part of what was left over that the large operation got: what it gets alone, less what the urgent one sent. None: not known.

    sent_bytes: of each host, over its link; both operations are counted by the link's bytes, so there is one rank for each of two hosts.
    """
    apart = medians.get(('sluice', 'apart'))
    if apart is None or alone == 0 or sent_bytes is None:
        return None
    urgent = sent_bytes / ((gap_us + apart['p50_us']) * 1e-6)
    return apart['bulk_bytes_per_second'] / max(alone - urgent, 1)


def table(title, medians, alone, kept):
    lines = [title, '', '| library | beside | p50 µs | p99 µs | p99.9 µs | bulk MB/s | p50 / alone | p99 / alone |', '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |']
    for (library, way), one in medians.items():
        base = medians[library, 'alone']
        lines.append(f'| {library} | {way} | {one["p50_us"]:,.0f} | {one["p99_us"]:,.0f} | {one["p999_us"]:,.0f} | '
                     f'{one["bulk_bytes_per_second"] / 1e6:.1f} | {one["p50_us"] / base["p50_us"]:.2f} | {one["p99_us"] / base["p99_us"]:.2f} |')
    lines += ['', f'Bulk alone: {alone / 1e6:.1f} MB/s.' + ('' if kept is None else f' Beside the urgent lane it kept {kept:.0%} of what was left over.'), '', '']
    return '\n'.join(lines)
