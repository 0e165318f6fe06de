"""Hosts do what their head promises, and nothing is left of them:  hosts_test.py FOLDER_OF_BUILT_TOOLS"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import hosts  # pylint: disable=wrong-import-position
from hosts import Hosts, JobTimeout, NetworkError

TOOLS = sys.argv.pop(1) if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else 'build/tools'
PROGRAM = [sys.executable, '-ISB', os.path.join(HERE, 'programs.py')]
GIGABIT = 1e9
MB = 1 << 20
DEADLINE = 20.0  # seconds: nothing here takes so long
TRIES = 3
SECONDS = 0.6  # of a stream
ports = iter(range(5000, 6000))
markers = iter(range(3600, 4600))


def eventually(condition):
    end = time.monotonic() + DEADLINE
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def processes_with(marker):
    """Process ids of those that have this word."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/cmdline', 'rb') as file:
            if marker.encode() in file.read().split(b'\0'):
                found.append(int(pid))
    return found


def new_marker():
    return f'{next(markers)}.{os.getpid()}'  # seconds to sleep, which nobody else sleeps


def links_outside():
    return subprocess.run(['ip', '-brief', 'link'], capture_output=True, text=True, check=True).stdout


def reaches(some, source, address, port, timeout=DEADLINE):
    return some.start(source, [*PROGRAM, 'ask', address, port, timeout], stderr=subprocess.DEVNULL).wait(DEADLINE) == 0


def serve(some, host, *words):
    """A process that listens already."""
    process = some.start(host, [*PROGRAM, *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'ready\n'
    return process


def stream(some, seconds=SECONDS):
    """From host 0 to host 1: bits per second and bytes."""
    port = next(ports)
    taker = serve(some, 1, 'take', port, seconds)
    some.start(0, [*PROGRAM, 'pour', some.address(1), port, seconds + 0.4])
    bits_per_second, count = taker.communicate(timeout=DEADLINE)[0].split()
    return float(bits_per_second), int(count)


def wrong_values(output):
    """How many the printed table of a program counts, and that its last word is OK."""
    found = re.search(r'^# Combinations checked : (\d+) wrong (\d+)$', output, re.MULTILINE)
    return int(found[2]) if found and int(found[1]) > 0 and re.search(r'^# Out of bounds values : 0 OK$', output, re.MULTILINE) else None


class OnTwoHosts(unittest.TestCase):
    """Those that leave the hosts as they were share them."""

    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.hosts = stack.enter_context(Hosts(2))

    def answering(self, host):
        """Its port."""
        port = next(ports)
        process = serve(self.hosts, host, 'answer', port)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.hosts.kill, process)
        return port


class Network(OnTwoHosts):
    def test_hosts_reach_each_other_and_themselves(self):
        port = self.answering(1)
        self.assertTrue(reaches(self.hosts, 0, self.hosts.address(1), port))
        self.assertTrue(reaches(self.hosts, 1, self.hosts.address(1), port))
        self.assertTrue(reaches(self.hosts, 1, '127.0.0.1', port))

    def test_nobody_is_reached_where_nobody_listens(self):
        self.assertFalse(reaches(self.hosts, 0, self.hosts.address(1), next(ports)))

    def test_hosts_of_two_runs_with_the_same_addresses_do_not_meet(self):
        port = self.answering(1)
        with Hosts(2) as others:
            self.assertFalse(reaches(others, 0, others.address(1), port))

    def test_the_machine_outside_is_not_reached_and_does_not_reach_in(self):
        port = self.answering(0)
        outside = subprocess.run([*PROGRAM, 'ask', self.hosts.address(0), str(port), '0.3'], stderr=subprocess.DEVNULL, check=False)
        self.assertNotEqual(outside.returncode, 0)
        said = self.hosts.start(0, [*PROGRAM, 'ask', '192.0.2.1', port, DEADLINE], stderr=subprocess.PIPE, text=True)
        self.assertIn('Network is unreachable', said.communicate(timeout=DEADLINE)[1])

    def test_the_machine_outside_keeps_its_links(self):
        before = links_outside()
        with Hosts(1):
            self.assertEqual(links_outside(), before)
        self.assertEqual(links_outside(), before)

    def test_hosts_may_have_cores_of_their_own(self):
        everything = len(os.sched_getaffinity(0))
        with Hosts(2, own_cores=True) as apart:
            cores = [one.output.split() for one in apart.run_job(['python3', '-c', 'import os; print(*sorted(os.sched_getaffinity(0)))'])]
        if everything < 2:
            self.assertEqual(cores[0], cores[1])
            return
        self.assertEqual(len(cores[0]) + len(cores[1]), everything)
        self.assertFalse(set(cores[0]) & set(cores[1]))
        self.assertEqual(self.hosts.cores(), '-/-')

    def test_each_host_has_its_name(self):
        names = [self.hosts.start(host, ['hostname'], stdout=subprocess.PIPE, text=True).communicate()[0] for host in (0, 1)]
        self.assertEqual(names, ['host0\n', 'host1\n'])

    def carrier(self, host):
        shown = self.hosts.start(host, ['cat', '/sys/class/net/eth0/carrier'], stdout=subprocess.PIPE, text=True)
        return shown.communicate(timeout=DEADLINE)[0].strip()

    def test_a_cut_host_is_unreachable_and_comes_back(self):
        port = self.answering(1)
        for carrier_lost, carrier in ((True, '0'), (False, '1')):
            with self.subTest(carrier_lost):
                self.hosts.cut(1, carrier_lost)
                self.assertFalse(reaches(self.hosts, 0, self.hosts.address(1), port, timeout=0.3))
                self.assertTrue(reaches(self.hosts, 1, self.hosts.address(1), port, timeout=0.3))
                self.assertEqual(self.carrier(1), carrier)
                self.hosts.mend(1)
                self.assertTrue(reaches(self.hosts, 0, self.hosts.address(1), port))
                self.assertEqual(self.carrier(1), '1')

    def test_a_stalled_process_stands_still_with_its_group_until_it_is_resumed(self):
        marker = new_marker()
        process = self.hosts.start(0, ['sh', '-c', f'sleep {marker}; true'])
        sleeper = eventually(lambda: [pid for pid in processes_with(marker) if pid != process.pid])[0]
        for act, states in ((self.hosts.stall, 'T'), (self.hosts.resume, 'SR')):
            act(process)
            for pid in (process.pid, sleeper):
                self.assertTrue(eventually(lambda pid=pid, states=states: state_of(pid) in states), (pid, states))
        self.hosts.kill(process)
        self.assertEqual(processes_with(marker), [])


def state_of(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        return file.read().rpartition(') ')[2][0]


class Links(OnTwoHosts):
    def assert_shaped(self, some):
        """Never above the rate; and near it in one of a few tries, for something else may hold the cores."""
        best = 0
        for _ in range(TRIES):
            best = max(best, stream(some)[0])
            self.assertLessEqual(best, 1.02 * GIGABIT)
            if best >= 0.9 * GIGABIT:
                return
        self.fail(f'the best of {TRIES} streams is {best / 1e6:.0f} Mbit/s')

    def test_a_stream_is_shaped_to_the_rate(self):
        self.assert_shaped(self.hosts)

    def test_a_stream_reaches_the_rate_through_the_port_of_a_switch(self):
        with Hosts(2, inward=True) as switched:
            self.assert_shaped(switched)

    def test_a_slower_rate_is_slower(self):
        with Hosts(2, rate='100mbit') as slow:
            self.assertAlmostEqual(stream(slow)[0] / GIGABIT, 0.096, delta=0.006)

    def test_without_a_rate_a_stream_is_faster_than_the_shape_allows(self):
        with Hosts(2, rate=None) as fast, self.assertRaises(AssertionError):
            self.assert_shaped(fast)

    def test_the_counter_holds_what_a_stream_sent(self):
        before = self.hosts.bytes_sent(0), self.hosts.bytes_sent(1)
        count = stream(self.hosts, 0.2)[1]
        sent, back = self.hosts.bytes_sent(0) - before[0], self.hosts.bytes_sent(1) - before[1]
        self.assertGreaterEqual(sent, count)
        self.assertLess(sent, 1.05 * count)
        self.assertLess(back, 0.1 * count)


class Capture(OnTwoHosts):
    def captured(self, dscp, count):
        """What was seen at host 1 of marked bytes."""
        port = next(ports)
        taker = serve(self.hosts, 1, 'take', port, 0.1)
        with self.hosts.capture(1) as capture:
            sender = self.hosts.start(0, [*PROGRAM, 'mark', self.hosts.address(1), port, dscp, count])
            self.assertEqual(sender.wait(DEADLINE), 0)
        self.assertEqual(int(taker.communicate(timeout=DEADLINE)[0].split()[1]), count)
        self.assertEqual(capture.lost, 0)
        return {key[2]: count for key, count in capture.bytes.items() if key[1] == port}, capture.marks()

    def test_a_capture_sees_the_mark_of_a_socket(self):
        to_port, everywhere = self.captured(46, 3 * MB)
        self.assertGreaterEqual(to_port[46], 3 * MB)  # more if something was sent again
        self.assertEqual(sum(to_port.values()), to_port[46])  # what carried no mark carried no payload
        self.assertEqual(everywhere[46], to_port[46])

    def test_a_capture_sees_no_mark_where_none_was_set(self):
        to_port, everywhere = self.captured(0, 1000)
        self.assertGreaterEqual(to_port[0], 1000)
        self.assertEqual(set(everywhere), {0})

    def test_a_capture_is_empty_where_nothing_is_sent(self):
        with self.hosts.capture(0) as capture:
            pass
        self.assertEqual(capture.bytes, {})


class Jobs(OnTwoHosts):
    def perf(self, some, ranks_per_host, **env):
        """Of an all-reduce of 1 MiB: bytes from host 0 to others, and bytes over its loopback."""
        before = some.bytes_sent(0), some.bytes_sent(0, 'lo')
        argv = [os.path.join(TOOLS, 'all_reduce_perf'), '-b', '1M', '-e', '1M', '-n', '4', '-w', '1', '-c', '1']
        ended = some.run_job(argv, ranks_per_host, env)
        self.assertEqual([one.code for one in ended], [0] * len(ended), ended)
        self.assertEqual(len(ended), some.count * ranks_per_host)
        self.assertEqual(wrong_values(ended[0].output), 0, ended[0].output)
        return some.bytes_sent(0) - before[0], some.bytes_sent(0, 'lo') - before[1]

    def test_two_ranks_on_two_hosts_sum_right_over_tcp(self):
        between, inside = self.perf(self.hosts, 1)
        self.assertGreater(between, 4 * MB)  # each of the timed ones sends at least its input
        self.assertLess(inside, MB)

    def test_four_ranks_on_two_hosts_use_tcp_between_hosts_and_memory_within(self):
        between, inside = self.perf(self.hosts, 2)
        self.assertGreater(between, 4 * MB)
        self.assertLess(inside, MB)

    def test_ranks_of_one_host_that_may_not_use_memory_are_seen_on_its_loopback(self):
        with Hosts(1) as alone:
            between, inside = self.perf(alone, 2, SLUICE_TRANSPORT='tcp')
        self.assertLess(between, MB)
        self.assertGreater(inside, 4 * MB)

    def test_wrong_values_are_seen(self):
        good = '# Out of bounds values : 0 OK\n# Combinations checked : 8 wrong 0\n'
        self.assertEqual(wrong_values(good), 0)
        for bad in (good.replace('wrong 0', 'wrong 3'), good.replace('0 OK', '3 FAILED'), good.replace('8', '0'), ''):
            self.assertNotEqual(wrong_values(bad), 0, bad)

    def test_a_rank_knows_its_place(self):
        ended = self.hosts.run_job(['sh', '-c', 'echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $EXTRA'], 2,
                                   {'EXTRA': 'more'})
        self.assertEqual([one.output for one in ended], [f'{rank} 4 {rank % 2} 2 10.77.0.1 more\n' for rank in range(4)])
        self.assertEqual([(one.host, one.rank) for one in ended], [(0, 0), (0, 1), (1, 2), (1, 3)])

    def test_a_rank_that_fails_is_told_by_its_code_and_words(self):
        ended = self.hosts.run_job(['sh', '-c', 'echo words of $RANK >&2; exit $((RANK * 3))'])
        self.assertEqual([(one.code, one.output) for one in ended], [(0, 'words of 0\n'), (3, 'words of 1\n')])

    def test_a_job_can_be_disturbed_while_it_runs(self):
        with self.hosts.job(['sleep', '0.1']) as ranks:
            self.hosts.stall(ranks[1].process)
            self.assertEqual([one.code for one in self.hosts.wait(ranks[:1])], [0])
            time.sleep(0.2)
            self.assertIsNone(ranks[1].process.poll())
            self.hosts.resume(ranks[1].process)
            self.assertEqual([(one.rank, one.code) for one in self.hosts.wait(ranks[1:])], [(1, 0)])

    def test_a_job_that_is_left_is_killed(self):
        marker = new_marker()
        with self.hosts.job(['sleep', marker], 2):
            self.assertTrue(eventually(lambda: len(processes_with(marker)) == 4))
        self.assertEqual(processes_with(marker), [])

    def test_a_job_that_hangs_is_killed_at_its_deadline_and_named(self):
        marker = new_marker()
        with self.assertRaises(JobTimeout) as caught:
            self.hosts.run_job(['sh', '-c', f'echo rank $RANK began; [ $RANK = 0 ] || sleep {marker}; true'], deadline=0.4)
        self.assertIn('not ended after 0.4 s: host 1 rank 1\n', str(caught.exception))
        self.assertIn('host 0 rank 0 ended with 0; it wrote: rank 0 began', str(caught.exception))
        self.assertIn('host 1 rank 1 was killed; it wrote: rank 1 began', str(caught.exception))
        self.assertEqual(processes_with(marker), [])


@unittest.skipIf(hosts.missing_open_mpi(), hosts.missing_open_mpi())
class OpenMpi(OnTwoHosts):
    def test_its_ranks_run_on_their_hosts(self):
        ended = self.hosts.run_open_mpi(['sh', '-c', 'echo $OMPI_COMM_WORLD_RANK $(hostname) $(readlink /proc/self/ns/net)'], 2)
        self.assertEqual(ended.code, 0, ended.output)
        ranks = sorted(line.split() for line in ended.output.splitlines())
        self.assertEqual([rank[:2] for rank in ranks], [['0', 'host0'], ['1', 'host0'], ['2', 'host1'], ['3', 'host1']])
        self.assertEqual(len({rank[2] for rank in ranks}), 2)

    def test_its_ranks_keep_to_the_cores_of_their_hosts(self):
        with Hosts(2, own_cores=True) as apart:
            ended = apart.run_open_mpi(['sh', '-c', 'echo $(hostname) $(taskset -cp $$ | sed "s/.*: //")'])
        self.assertEqual(ended.code, 0, ended.output)
        seen = dict(line.split() for line in ended.output.splitlines())
        if len(os.sched_getaffinity(0)) > 1:
            self.assertNotEqual(seen['host0'], seen['host1'])

    def test_a_rank_that_fails_makes_it_fail(self):
        self.assertEqual(self.hosts.run_open_mpi(['sh', '-c', 'exit $OMPI_COMM_WORLD_RANK']).code, 1)

    def test_one_that_hangs_is_killed_on_all_hosts(self):
        marker = new_marker()
        with self.assertRaisesRegex(JobTimeout, 'not ended after 1 s: host 0 mpirun\n'):
            self.hosts.run_open_mpi(['sleep', marker], deadline=1.0)
        self.assertTrue(eventually(lambda: not processes_with(marker)))


class End(unittest.TestCase):
    def owner(self):
        """A process that has hosts, a namespace of it, and the word of what runs there."""
        marker = new_marker()
        process = subprocess.Popen([*PROGRAM, 'own', marker], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate, timeout=DEADLINE)
        self.addCleanup(process.terminate)
        name = process.stdout.readline().strip()
        self.assertIn(name, hosts.names_of())
        self.assertTrue(eventually(lambda: len(processes_with(marker)) > 0))
        return process, name, marker

    def assert_nothing_left(self, name, marker):
        self.assertNotIn(name, hosts.names_of())
        self.assertEqual(processes_with(marker), [])

    def test_nothing_is_left_when_the_body_raises(self):
        marker = new_marker()
        with self.assertRaises(ZeroDivisionError), Hosts(2) as some:
            name = some.namespace(0)
            some.start(0, ['sleep', marker])
            some.start(1, ['setsid', 'sleep', marker])  # leaves its group
            self.assertTrue(eventually(lambda: len(processes_with(marker)) == 2))
            raise ZeroDivisionError
        self.assert_nothing_left(name, marker)

    def test_nothing_is_left_when_the_owner_is_ended_by_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                continue  # as under nohup: those whom we start ignore it too
            with self.subTest(number):
                process, name, marker = self.owner()
                process.send_signal(number)
                self.assertNotEqual(process.wait(DEADLINE), 0)
                self.assert_nothing_left(name, marker)

    def test_what_a_killed_owner_left_goes_with_the_next_hosts_and_what_a_live_one_has_stays(self):
        process, name, marker = self.owner()
        _, name_alive, marker_alive = self.owner()
        process.kill()
        process.wait()
        self.assertIn(name, hosts.names_of())
        self.assertNotEqual(processes_with(marker), [])
        with Hosts(1):
            self.assert_nothing_left(name, marker)
        self.assertIn(name_alive, hosts.names_of())
        self.assertNotEqual(processes_with(marker_alive), [])

    def test_nothing_is_left_of_hosts_that_can_not_be_made(self):
        before = hosts.names_of()
        with self.assertRaisesRegex(NetworkError, 'tc .* rate fast'), Hosts(2, rate='fast'):
            pass
        self.assertEqual(hosts.names_of(), before)


class Missing(unittest.TestCase):
    def test_nothing_is_missing_here(self):
        self.assertIsNone(hosts.missing())

    def test_it_says_who_is_needed(self):
        with mock.patch('os.geteuid', return_value=1000):
            self.assertIn('need root', hosts.missing())

    def test_it_names_the_package_of_a_tool(self):
        with mock.patch.dict(os.environ, {'PATH': '/nowhere'}):
            self.assertIn('the package iproute2', hosts.missing())

    def test_this_test_is_skipped_with_a_reason_where_namespaces_are_not_permitted(self):
        done = subprocess.run(['setpriv', '--bounding-set=-sys_admin', sys.executable, '-B', __file__], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn('no host can be made here: ip netns add', done.stdout)


if __name__ == '__main__':
    if why := hosts.missing():
        print(why)
        sys.exit(77)
    unittest.main()
