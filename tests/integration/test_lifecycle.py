#!/usr/bin/python3
"""Events of a target while it is profiled: exec, fork, end of the main thread,
new threads all the time, code that is loaded and unloaded, stop, end.
"""

import os
import signal
import time

import account
import chunk_rules
import harness
from harness import BUILD, check, wait_for
from progress import Progress


def functions(chunk):
    return {f.get('function', '') for f in chunk['profile']['frames']}


def all_functions(profd):
    return set().union(*(functions(c) for c in profd.chunks))


def thread_names(chunk):
    return {t['name'] for t in chunk['profile']['thread_metadata'].values()}


def check_rules(profd, *streams):
    """Checks that the server would accept each chunk, and that the chunks of
    each process follow each other."""
    found = [f'{e.where}: {text}' for e in profd.envelopes
             for text in chunk_rules.problems(e)]
    for chunks in streams or [profd.chunks]:
        found += chunk_rules.stream_problems(chunks)
    check(found == [], f'{found[:5]}')


def check_sums(profd):
    stats = profd.stats
    chunks = account.check_sums(stats, arrived='written')
    check(chunks['made'] == chunks['written'] == len(profd.envelopes),
          f'{chunks}, and {len(profd.envelopes)} files')


def check_complete(profd, share=1.0):
    """Checks that at least this share of the stacks reaches its root."""
    ends = profd.stats['unwind']
    whole = ends['complete'] + ends['truncated'] + sum(ends['failed'].values())
    check(whole > 0 and ends['complete'] >= share * whole,
          f'too many stacks are not complete: {ends}')


def check_quiet(profd):
    """Checks that no problem was logged. With a table a line tells how to view
    the profile, and on a busy machine another one that it was busy."""
    lines = [l for l in profd.stderr.splitlines()
             if not l.startswith('to see it: ') and '(ready)' not in l]
    check(lines == [], f'{lines}')


def exec_by(box, who):
    # Runs the program by a link, as is common on Debian. The link's name is
    # the thread's.
    link = box.make_dir('link') / 'a-name-of-its-own'
    link.symlink_to((BUILD / 'targets/exec_second').resolve())
    target = box.target('exec_first', who, link)
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    profd.wait_chunks()
    target.signal(signal.SIGUSR1)
    target.wait_line(f'second {target.pid}')
    profd.wait_chunks(2)
    profd.interrupt()
    check_quiet(profd)
    check_sums(profd)
    check_complete(profd, 0.9)
    chunks = profd.chunks
    first = [c for c in chunks if 'first' in thread_names(c)]
    second = [c for c in chunks if 'second' in thread_names(c)]
    check(len(first) >= 1 and len(second) >= 1,
          f'{len(first)} chunks of the first program, {len(second)} of the '
          'second')
    check(first + second == chunks, 'a chunk of both programs, or of none')
    check(len({c['profiler_id'] for c in chunks}) == 1, 'not one profiler_id')
    # The time between the last tick of one program and the first tick of the
    # next is in no chunk.
    check_rules(profd, first, second)
    for chunks, own, other in ((first, 'first', 'second'),
                               (second, 'second', 'first')):
        for chunk in chunks:
            names = functions(chunk)
            check({f'{own}_main', f'{own}_thread'} <= names and
                  not {f'{other}_main', f'{other}_thread'} & names,
                  f'a chunk of exec_{own} has {names}')
            check(chunk['release'].startswith(f'exec_{own}@'),
                  f'its release is {chunk["release"]}')
            check(thread_names(chunk) == {'main', own},
                  f'its threads are {thread_names(chunk)}')


def test_exec_by_the_main_thread(box):
    exec_by(box, 'leader')


def test_exec_while_nobody_looks(box):
    """The daemon is stopped, so no capture sees the exec."""
    target = box.target('exec_first', 'leader', BUILD / 'targets/exec_second')
    # The kernel does not stop a process group that no process could continue.
    profd = box.profd([target], '--chunk-seconds', '1', process_group=0)
    profd.wait_attached().wait_chunks()
    profd.signal(signal.SIGTSTP)
    wait_for(lambda: harness.state(profd.pid) == 'T', 'it is suspended')
    target.signal(signal.SIGUSR1)
    target.wait_line(f'second {target.pid}')
    profd.signal(signal.SIGCONT)
    profd.wait_attached()
    profd.wait_chunks(2)
    profd.interrupt()
    check_quiet(profd)
    check_sums(profd)
    for chunk in profd.chunks:
        release, names = chunk['release'], thread_names(chunk)
        check(release.startswith('exec_first@') and names == {'main', 'first'}
              or release.startswith('exec_second@') and
              names == {'main', 'second'}, f'{release} has {names}')
    check(profd.chunks[-1]['release'].startswith('exec_second@'),
          f'the last is still {profd.chunks[-1]["release"]}')


def test_exec_by_another_thread(box):
    exec_by(box, 'thread')


def survivors_stacks(chunk):
    """Returns the stacks of the thread that goes on, up to its own functions.
    """
    tid, = chunk_rules.thread_ids(chunk, 'survivor')
    return {tuple(n for n in b.names if n.startswith('survivor'))
            for b in chunk_rules.bars(chunk) if b.thread == tid}


def check_survivor(chunk):
    stacks = survivors_stacks(chunk)
    check(stacks and all(s[-2:] == ('survivor_run', 'survivor')
                         for s in stacks),
          f'the stacks of the survivor: {stacks}')


def wait_main_thread_is_gone(target):
    wait_for(lambda: harness.state(target.pid) == 'Z', 'the main thread exits')


def test_main_thread_exits(box):
    target = box.target('leaderless')
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    profd.wait_chunks()
    target.signal(signal.SIGUSR1)
    wait_main_thread_is_gone(target)
    gone = time.time()
    profd.wait_chunks(2)
    target.signal(signal.SIGUSR2)
    check(target.wait() == 3, f'the target: {target.report()}')
    profd.finish()
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    # A thread that exits has no frame to which it will return.
    check_complete(profd, 0.9)
    for chunk in profd.chunks:
        check_survivor(chunk)
    last = max(s['timestamp'] for c in profd.chunks
               for s in c['profile']['samples']
               if s['thread_id'] == str(target.pid))
    # Two chunks were made since then.
    check(last < gone + 0.5, f'the main thread has samples {last - gone:.3f} '
                             's after its end')


def test_main_thread_has_exited_before(box):
    target = box.target('leaderless')
    target.signal(signal.SIGUSR1)
    wait_main_thread_is_gone(target)
    profd = box.profd([target], '--duration', '2').finish()
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    check_complete(profd)
    chunk, = profd.chunks
    check_survivor(chunk)
    check(chunk['release'].startswith('leaderless@'),
          f'its release is {chunk["release"]}')
    # One thread is alive.
    stats = profd.stats
    check(stats['samples_expected'] == stats['ticks'],
          f'a dead thread is expected: {stats}')
    check(target.running(), 'the target has ended')


def test_target_ends(box):
    """The end is a normal one, and the last chunk is kept."""
    target = box.target('shares')
    profd = box.profd([target]).wait_attached()
    harness.wait_work(target.pid, 0.5)
    # The same as at the end of --duration.
    before = time.time()
    target.signal(signal.SIGALRM)
    check(target.wait() == 0, f'the target: {target.report()}')
    end = time.time()
    profd.finish()
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    chunk, = profd.chunks
    last = max(s['timestamp'] for s in chunk['profile']['samples'])
    # Another process, such as sentry-profd, may have used its processor for a
    # while.
    missed = sum(profd.stats['missed'].values()) / 101
    check(before - 0.1 - missed < last < end + 0.1,
          f'the last sample is {end - last:.3f} s before the end')


def test_one_of_two_is_killed(box):
    target, other = box.target('shares'), box.target('shares')
    profd = box.profd([target, other]).wait_attached()
    profd.wait_looks()
    target.signal(signal.SIGKILL)
    target.wait()
    profd.wait_looks()
    check(profd.running(), 'the daemon ended with one of its targets')
    profd.interrupt()
    check_quiet(profd)
    check_sums(profd)
    check(len(profd.chunks) == 2, f'{len(profd.chunks)} chunks')
    ticks = {t['pid']: t['ticks'] for t in profd.stats['targets']}
    check(0 < ticks[target.pid] < ticks[other.pid], f'ticks: {ticks}')
    check(other.running() and harness.tracer(other.pid) == 0,
          'the other target is not as it was')


def is_stopped(target):
    """Returns true if its parent, which is the test, sees it as stopped. A
    shell would print "Stopped"."""
    info = os.waitid(os.P_PID, target.pid,
                     os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
    return info is not None and info.si_status == signal.SIGSTOP


def check_standing_still(target):
    """Waits until two checks in a row see the same state, so that all threads
    have stopped. Then checks that nothing moves."""
    before = target.counters()

    def at_rest():
        nonlocal before
        time.sleep(0.05)
        before, last = target.counters(), before
        return before == last
    wait_for(at_rest, 'the target stands still')
    time.sleep(0.3)
    check(target.counters() == before, 'the target runs although it is stopped')


def test_target_is_stopped_and_continued(box):
    target = Progress(box)
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    for _ in range(3):
        target.check_going_on()
        target.program.signal(signal.SIGSTOP)
        wait_for(lambda: is_stopped(target), 'its parent to see it stopped')
        check_standing_still(target)
        target.program.signal(signal.SIGCONT)
        target.check_going_on()
    profd.interrupt()
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    target.check_untouched()
    target.check_going_on()


def test_stopped_target_stays_stopped(box):
    """The stopped target stays stopped when capture attaches, profiles and
    detaches."""
    target = Progress(box)
    target.program.signal(signal.SIGSTOP)
    wait_for(lambda: is_stopped(target), 'its parent to see it stopped')
    check_standing_still(target)
    profd = box.profile([target])
    check_quiet(profd)
    check_sums(profd)
    check_standing_still(target)
    check(harness.state(target.pid) == 'T' and harness.tracer(target.pid) == 0,
          f'the target is left like this: {target.describe()}')
    target.program.signal(signal.SIGCONT)
    target.check_going_on()


def test_threads_come_and_go(box):
    """200 threads a second with ticks of 10 ms: most threads are never
    sampled."""
    target = box.target('short_threads')
    profd = box.profile([target], work=0.3)
    target.signal(signal.SIGUSR1)
    check(target.wait() == 0, f'the target: {target.report()}')
    n = int(target.wait_line(r'threads (\d+)')[1])
    check(n > 50, f'the target got {n} threads done')
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    check('short_lived' in all_functions(profd),
          f'no short-lived thread was seen: {all_functions(profd)}')
    # clone3 has no call frame information at the system call itself. All new
    # threads wait there for a processor, and their stacks end with one frame.
    # Its name is in no .dynsym.
    bars = [b for c in profd.chunks for b in chunk_rules.bars(c)]
    odd = [b.names for b in bars if len(b.names) > 1 and
           b.names[-1] not in ('_start', 'clone3') and
           not b.names[-1].startswith('libc.so.6+')]
    check(len(odd) <= 0.05 * len(bars), f'stacks without a root: {odd[:5]}')


def test_children_are_left_alone(box):
    """Children made by fork, by vfork and exec, and by clone are not profiled.
    """
    target = box.target('forks')
    profd = box.profd([target]).wait_attached()
    seen = set()

    def enough():
        check(profd.running(), profd.stderr)
        seen.update(harness.children(target.pid))
        return len(seen) >= 60
    wait_for(enough, '60 children')
    profd.interrupt()
    target.signal(signal.SIGUSR1)
    check(target.wait() == 0, f'the target: {target.report()}')
    n, traced = map(int, target.wait_line(
        r'children (\d+) traced (\d+)').groups())
    check(n > 20 and traced == 0, f'{n} children, {traced} of them traced')
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    check('child_work' not in all_functions(profd), 'a child was profiled')
    threads = {tid for c in profd.chunks
               for tid in c['profile']['thread_metadata']}
    check(threads == {str(target.pid)}, f'threads: {threads}')


def test_code_comes_and_goes(box):
    """Names are those of the loaded code, also at addresses where other code
    was before."""
    target = box.target('plugins')
    profd = box.profile([target], work=2)
    target.signal(signal.SIGUSR1)
    check(target.wait() == 0, f'the target: {target.report()}')
    check_quiet(profd)
    check_sums(profd)
    check_complete(profd, 0.7)
    callers = {'lgamma': set(), '__b64_ntop': set()}
    for chunk in profd.chunks:
        for bar in chunk_rules.bars(chunk):
            for name, found in callers.items():
                if name in bar.names[:-1]:
                    found.add(bar.names[bar.names.index(name) + 1])
    check(callers == {'lgamma': {'use_libm'}, '__b64_ntop': {'use_libresolv'}},
          f'who calls what was loaded: {callers}')


def swap(box, us):
    """Two libraries take turns at one address. The shares of both are those of
    the program, and stacks are whole. A rule of the wrong library would end a
    stack."""
    target = box.target('swaps', us)
    profd = box.profile([target], '--mode', 'cpu', work=4)
    target.signal(signal.SIGUSR1)
    check(target.wait() == 0, f'the target: {target.report()}')
    alpha, beta, same = map(int, target.wait_line(
        r'alpha (\d+) beta (\d+) same (\d)').groups())
    check(same == 1, 'the libraries are at different addresses')
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    # The first samples of an unknown library are lost, with a reason.
    check_complete(profd, 0.85)
    seconds = {'alpha': 0, 'beta': 0}
    for bar in (b for c in profd.chunks for b in chunk_rules.bars(c)):
        check(not {'alpha', 'beta'} <= set(bar.names), f'{bar.names}')
        for name in seconds.keys() & set(bar.names):
            seconds[name] += bar.seconds
    share = seconds['alpha'] / sum(seconds.values())
    truth = alpha / (alpha + beta)
    # 400 samples: three standard deviations.
    check(abs(share - truth) < 0.08, f'{share:.3f} and not {truth:.3f}')


def test_libraries_swap_every_5_ms(box):
    swap(box, '5000')


def test_libraries_swap_every_20_ms(box):
    swap(box, '20000')


def test_libraries_swap_every_100_ms(box):
    swap(box, '100000')


def test_short_runs(box):
    """The run ends while unwind still reads its first file."""
    target, made = box.target('shares'), 0
    for _ in range(20):
        profd = box.profd([target], '--duration', '0.1').finish()
        check_quiet(profd)
        stats = profd.stats
        # On a busy machine no thread was sampled twice.
        if set(stats['chunks']['discarded']) == {'insufficient_data'}:
            continue
        check_sums(profd)
        chunk, = profd.chunks
        times = [s['timestamp'] for s in chunk['profile']['samples']]
        # The time from the first tick to the one after the last. No sample of
        # a thread is expected before its first look.
        ticks = stats['samples_expected'] / len(harness.threads(target.pid)) \
            - sum(stats['missed'].values())
        check(max(times) - min(times) > (ticks - 3) / 101,
              f'{ticks} ticks, and {max(times) - min(times):.3f} s in the '
              'chunk')
        made += 1
        if made == 5:
            break
    check(made > 0, 'no run has a chunk')


def test_signals_end_it(box):
    target = Progress(box)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        profd = box.profd([target], table=True).wait_attached()
        harness.wait_work(target.pid, 0.3)
        profd.interrupt(number)
        check_quiet(profd)
        check_sums(profd)
        check('calculate' in profd.stdout, f'no table: {profd.stdout}')
        target.check_untouched()
    target.check_going_on()


def test_stopped_broker(box):
    """Stopping the daemon does not stop the target."""
    target = Progress(box)
    profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
    profd.signal(signal.SIGSTOP)
    wait_for(lambda: harness.state(profd.pid) == 'T', 'the broker is stopped')
    for _ in range(5):
        target.check_going_on()
        time.sleep(0.3)
    profd.signal(signal.SIGCONT)
    profd.interrupt()
    check_quiet(profd)
    check_sums(profd)
    check_rules(profd)
    target.check_untouched()


if __name__ == '__main__':
    harness.main(globals())
