"""The comparison itself, on made-up numbers and made-up libraries:  peers_test.py SOURCE_ROOT"""

import io
import json
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from contextlib import redirect_stdout

sys.dont_write_bytecode = True
ROOT = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else os.getcwd()
sys.path.insert(0, os.path.join(ROOT, 'bench/peers'))
FAKES = os.path.join(ROOT, 'tests/bench/peers')

import configurations  # pylint: disable=wrong-import-position
import measure
import peers
import plot
import processes
import report
import targets
from configurations import ANY, PEER, ROOFLINE, WINDOWS, Configuration
from measure import Case, Outcome, paired_ratio

KI, MI = 1 << 10, 1 << 20
TWO_SIZES = ('--ops', 'all_reduce', '--sizes', '64,4K', '--ranks', '2', '--heat', 'warm', '--samples', '3', '--batch-ms', '0.001')


def fake(library, role, behaviour, nanoseconds, name='', program='fake_peer.py'):
    return Configuration(library, name, role, program, 'fake-dev', (
        sys.executable, '-ISB', '{bin}/' + program, '{directory}', '{rank}', '{ranks}', behaviour, str(nanoseconds)), each_rank=True)


def sluice(behaviour='good'):
    """Rank 1 of a made-up library takes twice as long as rank 0: 2 and 4 microseconds."""
    return [fake('Sluice', WINDOWS, behaviour, 1000, 'windows'), fake('Sluice', ANY, 'good', 2000, 'any pointer')]


def compared(*others, options=TWO_SIZES, mine=None):
    """Exit status, printed text, JSON and plot of a run over made-up libraries."""
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as printed:
        stem = os.path.join(folder, 'result')
        status = peers.main([*options, '--bin', FAKES, '--output', stem], [*(mine or sluice()), *others])
        with open(stem + '.json', encoding='utf-8') as file, open(stem + '.svg', encoding='utf-8') as picture:
            return status, printed.getvalue(), json.load(file), picture.read()


class PairedRatio(unittest.TestCase):
    def test_drift_that_both_see_does_not_count(self):
        theirs = [100, 130, 900, 170, 5000]
        self.assertEqual(paired_ratio([sample / 4 for sample in theirs], theirs), 0.25)

    def test_one_disturbed_pair_does_not_count(self):
        self.assertEqual(paired_ratio([1, 1, 500, 1, 1], [2, 2, 2, 2, 2]), 0.5)

    def test_it_is_not_the_ratio_of_the_medians(self):
        self.assertEqual(paired_ratio([1, 20, 3], [2, 10, 30]), 0.5)  # of the medians: 3 / 10

    def test_nothing_measured_has_no_ratio(self):
        self.assertIsNone(paired_ratio([], [1]))


class Targets(unittest.TestCase):
    def test_all_reduce_with_windows_follows_the_list(self):
        for size, part in ((8, 0.8), (512, 0.8), (4 * KI, 1 / 8), (32 * KI, 1 / 6), (256 * KI, 1 / 5), (2 * MI, 1 / 3.5), (64 * MI, 1 / 4)):
            self.assertEqual(targets.part('all_reduce', 2, WINDOWS, size), part)

    def test_all_reduce_of_any_pointer_follows_the_list(self):
        for size, part in ((8, 1), (4 * KI, 0.5), (1 * MI, 0.5), (2 * MI, 0.7), (64 * MI, 0.7)):
            self.assertEqual(targets.part('all_reduce', 2, ANY, size), part)

    def test_the_others_have_theirs_and_nothing_may_be_slower_elsewhere(self):
        for op, size, part in (('reduce_scatter', 32 * KI, 1 / 3), ('all_to_all_v', 64 * MI, 0.5), ('broadcast', 4 * MI, 0.6),
                               ('broadcast', 16 * MI, 1.0), ('send_receive', 8, 1.15), ('all_gather', 1 * KI, 1.0)):
            self.assertEqual(targets.part(op, 2, ANY, size), part)

    def test_more_ranks_than_cores_have_one_target(self):
        self.assertEqual({targets.part(op, ranks, WINDOWS, 8) for op in peers.OPS for ranks in (4, 8)}, {0.6})

    def test_memory_limits_begin_at_a_size(self):
        self.assertIsNone(targets.multiple('all_reduce', 2, 256 * KI - 8))
        self.assertAlmostEqual(targets.multiple('all_reduce', 2, 256 * KI), 1 / 0.85)
        self.assertEqual(targets.multiple('broadcast', 2, MI), 1.15)


class Comparison(unittest.TestCase):
    case = Case('all_reduce', 2, 'warm', 4 * KI)

    def row(self, windows, best):
        there = [*sluice(), fake('A', PEER, 'good', 1), fake('B', PEER, 'good', 1)]
        return report.compare(self.case, {'Sluice (windows)': Outcome(samples=windows), 'A': Outcome(samples=best),
                                          'B': Outcome(samples=[10 * time for time in best])}, there)

    def test_the_fastest_peer_is_the_best(self):
        self.assertEqual(self.row([100], [900]).best_label, 'A')

    def test_a_target_is_reached_or_missed(self):
        self.assertEqual(self.row([100, 100], [800, 800]).verdict(WINDOWS), 'yes')
        self.assertEqual(self.row([101, 101], [800, 800]).verdict(WINDOWS), 'NO')

    def test_what_was_not_measured_was_not_reached(self):
        self.assertEqual(report.compare(self.case, {}, sluice()).verdict(WINDOWS), 'NO')

    def test_the_table_shows_times_ratios_and_targets(self):
        table = report.tables([self.row([100, 100, 100], [800, 700, 900])])
        cells = [cell.strip() for cell in table.splitlines()[-1].split('|')[1:-1]]
        self.assertEqual(cells, ['4 KiB', '0.1', '-', '0.8', 'A', '0.12', '0.12 yes', '-', '0.50 NO', '-', '-'])


class Document(unittest.TestCase):
    facts = {'date': '2026-01-01', 'commit': 'abc', 'samples': 9, 'batch_ms': 10.0, 'machine': {'Model name': 'Made up'}, 'stream': {},
             'waiting': {}, 'notes': ['missing: Peer']}

    def test_results_are_replaced_and_the_rest_stays(self):
        first = report.document('# Title\n\n' + report.MARK + 'old results\n', [], self.facts)
        self.assertEqual(first, report.document(first, [], self.facts))
        self.assertTrue(first.startswith('# Title\n\n' + report.MARK))
        self.assertNotIn('old results', first)
        for word in ('Made up', '2026-01-01', 'abc', '9 samples', '0 of 0 targets', '- missing: Peer'):
            self.assertIn(word, first)


class Run(unittest.TestCase):
    def test_times_are_the_last_ranks_and_ratios_follow(self):
        status, text, results, _ = compared(fake('Peer', PEER, 'good', 5000))
        self.assertEqual(status, 0)
        case = results['cases'][0]
        self.assertEqual(case['results']['Sluice (windows)']['samples_ns'], [2000, 2000, 2000])
        self.assertEqual((case['windows_to_best'], case['any_to_best'], case['best_peer']), (0.2, 0.4, 'Peer'))
        self.assertEqual(case['reached'], {'windows': 'yes', 'any': 'yes', 'roofline': ''})
        self.assertIn('3 of 4 targets reached\n  missed: all_reduce, 2 ranks, warm, 4 KiB: windows/best 0.20, target 0.12', text)

    def test_a_peer_counts_in_its_best_configuration(self):
        _, _, results, _ = compared(fake('Peer', PEER, 'good', 5000, 'a'), fake('Peer', PEER, 'good', 3000, 'b'))
        case = results['cases'][0]
        self.assertEqual(case['best_peer'], 'Peer (b)')
        self.assertEqual(case['results']['Peer (a)']['samples_ns'], [])
        self.assertEqual(case['results']['Peer (a)']['scouted_ns'], 10000)

    def test_a_wrong_result_is_called_wrong_and_never_the_best(self):
        status, text, results, _ = compared(fake('Liar', PEER, 'wrong', 1), fake('Peer', PEER, 'good', 5000))
        self.assertEqual(status, 0)
        self.assertIn('Liar is wrong at all_reduce of 64 bytes, 2 ranks, warm: rank 1, element 3 of 8 is 4, not 7', text)
        self.assertIn('Peer [Liar: wrong]', text)
        self.assertEqual({case['best_peer'] for case in results['cases']}, {'Peer'})
        self.assertEqual(results['cases'][0]['results']['Liar']['samples_ns'], [])

    def test_a_wrong_result_of_sluice_fails_the_run(self):
        status, text, results, _ = compared(fake('Peer', PEER, 'good', 5000), mine=sluice('wrong'))
        self.assertEqual(status, 1)
        self.assertIn('Sluice (windows) is wrong', text)
        self.assertEqual(results['cases'][0]['reached']['windows'], 'NO')

    def test_a_peer_that_dies_is_named_and_the_rest_goes_on(self):
        for behaviour, why in (('dies', 'ended with 7 at "time all_reduce 64 warm 2": a made-up crash'), ('fails', 'error a made-up failure')):
            status, text, results, _ = compared(fake('Mortal', PEER, behaviour, 3000), fake('Peer', PEER, 'good', 5000))
            self.assertEqual(status, 0)
            self.assertIn(f'Mortal was lost at all_reduce of 64 bytes, 2 ranks, warm: {why}', text)
            self.assertIn('Peer [Mortal: lost]', text)
            self.assertIn('Peer [Mortal: missing]', text)
            self.assertEqual([case['best_peer'] for case in results['cases']], ['Peer', 'Peer'])
            for case in results['cases']:
                self.assertEqual(len(case['results']['Peer']['samples_ns']), 3)
            self.assertNotIn('Mortal', results['cases'][1]['results'])

    def test_a_peer_that_answers_no_more_is_given_up(self):
        before, measure.TIME_DEADLINE, closing, processes.CLOSE_DEADLINE = measure.TIME_DEADLINE, 0.5, processes.CLOSE_DEADLINE, 0.5
        try:
            _, text, results, _ = compared(fake('Sleeper', PEER, 'silent', 3000), fake('Peer', PEER, 'good', 5000))
        finally:
            measure.TIME_DEADLINE, processes.CLOSE_DEADLINE = before, closing
        self.assertRegex(text, 'Sleeper was lost at .*: no answer for 0 s to "time all_reduce 64 warm .*" from rank 0, 1')
        self.assertEqual(results['cases'][1]['best_peer'], 'Peer')

    def test_a_missing_peer_is_named(self):
        status, text, _, _ = compared(fake('Absent', PEER, 'good', 1, program='absent_peer'), fake('Peer', PEER, 'good', 5000))
        self.assertEqual(status, 0)
        self.assertIn('missing: Absent: absent_peer was not built, for want of the package fake-dev', text)
        self.assertIn('Peer [Absent: missing]', text)

    def test_a_peer_that_does_not_start_is_named(self):
        _, text, _, _ = compared(fake('Moody', PEER, 'never_ready', 1), fake('Peer', PEER, 'good', 5000))
        self.assertIn('Moody did not start with 2 ranks: ended with 1 at "starting": made up, and not in the mood', text)

    def test_an_interrupted_run_keeps_what_was_measured(self):
        def say(_):
            raise KeyboardInterrupt

        rows, outcomes, facts, _ = peers.run(peers.parse([*TWO_SIZES, '--bin', FAKES]), sluice(), say)
        self.assertEqual((len(rows), len(outcomes)), (1, 1))
        self.assertIn('interrupted', facts['notes'][-1])

    def test_without_any_peer_nothing_is_reached(self):
        status, text, _, _ = compared()
        self.assertEqual(status, 0)
        self.assertIn('0 of 4 targets reached', text)

    def test_an_operation_that_a_peer_lacks_is_no_trouble(self):
        _, text, results, _ = compared(fake('Peer', PEER, 'sum_only', 5000), options=(*TWO_SIZES, '--ops', 'broadcast'))
        self.assertIsNone(results['cases'][0]['best_peer'])
        self.assertNotIn('Peer:', text)

    def test_waiting_and_stream_are_reported(self):
        memory = Configuration('Memory', '', ROOFLINE, 'fake_peer.py', '', fake('', PEER, 'good', 400).command, each_rank=True)
        _, text, results, _ = compared(fake('Peer', PEER, 'good', 5000), memory, options=(*TWO_SIZES, '--ranks', '8'))
        self.assertIn('STREAM, all cores: copy 30.0 GB/s, add 20.0 GB/s, triad 10.0 GB/s; memory, all_reduce of 4 KiB with 8 ranks, warm: 20.5 GB/s', text)
        self.assertIn('missed: 8 waiting ranks: cores used, Sluice (windows) 2.00, target 0.050', text)
        self.assertEqual(results['cases'][0]['windows_to_memory'], 2.5)


class Plot(unittest.TestCase):
    def test_each_library_is_one_line_in_both_plots_and_memory_is_drawn(self):
        memory = Configuration('Memory', '', ROOFLINE, 'fake_peer.py', '', fake('', PEER, 'good', 400).command, each_rank=True)
        _, _, _, picture = compared(fake('Open MPI', PEER, 'good', 5000, 'a'), fake('Open MPI', PEER, 'good', 7000, 'b'), memory)
        tree = xml.etree.ElementTree.fromstring(picture)
        space = '{http://www.w3.org/2000/svg}'
        titles = [title.text for title in tree.iter(space + 'title')]
        self.assertEqual(sorted(titles), sorted(['Sluice windows', 'Sluice any pointer', 'Open MPI', 'Memory'] * 2))
        self.assertEqual(len(list(tree.iter(space + 'circle'))), 4 * 2 * 2)  # lines, sizes, plots
        for circle in tree.iter(space + 'circle'):
            self.assertLess(float(circle.get('cx')), float(tree.get('width')))
            self.assertLess(float(circle.get('cy')), float(tree.get('height')))

    def test_bus_bandwidth_counts_what_a_link_carries(self):
        self.assertEqual([plot.bus_factor(op, 4) for op in ('all_reduce', 'all_gather', 'broadcast')], [1.5, 0.75, 1.0])


class Configurations(unittest.TestCase):
    def test_labels_are_told_apart_and_every_copy_and_component_is_listed(self):
        labels = [one.label for one in configurations.all_configurations()]
        self.assertEqual(len(labels), len(set(labels)))
        for component in ('tuned', 'sm', 'han'):
            for copy in ('none', 'cma'):
                self.assertIn(f'Open MPI ({component}, {copy})', labels)


if __name__ == '__main__':
    unittest.main()
