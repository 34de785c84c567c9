#!/usr/bin/python3
"""Targets that try to make the processes that read them hang, and a stopped
capture.

tests/targets/hang.c is the hostile target. Another program, "shares", is
profiled at the same time and must not suffer.
"""

import os
import re
import signal
import time

import harness
from account import check_sums
from harness import Skip, check, wait_for
from service import Service

harness.filters_kill()

RACE_S = 20

HUNG = r'sentry-profd: reading the memory of process {} hangs: .*no longer profiled'


def need_root():
    if os.geteuid() != 0:
        raise Skip('a userfaultfd of kernel accesses, and mounts, are root\'s')


def need_fuse():
    need_root()
    try:
        os.close(os.open('/dev/fuse', os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        raise Skip(f'/dev/fuse: {os.strerror(e.errno)}') from None


def capture_of(profd):
    found = profd.helpers()['capture']
    return found[0] if found else 0


def wait_replaced(profd, old, since):
    new = wait_for(lambda: capture_of(profd) not in (0, old) and
                   capture_of(profd), 'another capture')
    print(f'  replaced after {time.monotonic() - since:.1f} s')
    return new


def win_race(profd, hostile):
    """Waits until capture waits for a page of the target. For that, capture
    must look at the target at the moment at which the page is gone; on a busy
    machine that may never happen, and the test shows nothing."""
    def waits():
        capture = capture_of(profd)
        # The thread that traces waits, not the first one.
        where = [harness.proc_text(tid, 'wchan')
                 for tid in harness.threads(capture)] if capture else []
        return any('userfault' in w or 'request_wait' in w for w in where) or \
            re.search(HUNG.format(hostile.pid), profd.stderr)
    try:
        wait_for(waits, 'capture to wait for a page', RACE_S)
    except harness.Failure as e:
        raise Skip(str(e)) from None


def hang_target(box, how):
    return box.target('hang', how, box.make_dir('mount'))


def go_deep(target):
    target.signal(signal.SIGUSR1)
    target.wait_line('deep')


def wait_error(profd, pattern):
    wait_for(lambda: re.search(f'^{pattern}$', profd.stderr, re.M),
             f'the line "{pattern}"')


def check_untouched(target):
    check(target.running(), f'the target has ended: {target.report()}')
    for tid in harness.threads(target.pid):
        check(harness.tracer(tid) == 0, f'{tid} is traced')
        check(harness.state(tid) not in 'tT', f'{tid} is stopped')


def samples_after(profd, pid, since):
    """Returns the samples of a process's main thread after this time."""
    return sum(s['thread_id'] == str(pid) and s['timestamp'] > since
               for c in profd.chunks for s in c['profile']['samples'])


def check_stats(profd, bystander):
    stats = profd.stats
    check_sums(stats, arrived='written')
    figures, = [t for t in stats['targets'] if t['pid'] == bystander.pid]
    check(figures['missed'].get('no_capture', 0) > 0,
          f'nothing was missed while there was no capture: {figures}')


def deep_stacks(profd, target, since):
    """Returns the names of the frames of its thread "deep", leaf first, for
    each stack."""
    for chunk in profd.chunks:
        profile = chunk['profile']
        tids = [t for t, m in profile['thread_metadata'].items()
                if m.get('name') == 'deep']
        for sample in profile['samples']:
            if sample['thread_id'] in tids and sample['timestamp'] > since:
                yield [profile['frames'][i].get('function')
                       for i in profile['stacks'][sample['stack_id']]]


def look_around(box, how):
    """capture does not touch the pages that would make it hang: no sample is
    missed, and the stacks are right."""
    hostile = hang_target(box, how)
    other = box.napper()
    profd = box.profd([other, hostile], '--chunk-seconds', '1')
    profd.wait_attached()
    old = capture_of(profd)
    go_deep(hostile)
    since = time.time()
    names = ['innermost', 'deep', 'run_deep']

    def right():
        return [stack for stack in deep_stacks(profd, hostile, since)
                if 'innermost' in stack and
                stack[stack.index('innermost'):][:3] == names]
    profd.wait_chunks(3)
    wait_for(lambda: len(right()) > 50, 'stacks that are right')
    check(capture_of(profd) == old, 'capture was replaced')
    profd.interrupt()
    check('hang' not in profd.stderr.replace('using hang@', ''),
          f'somebody hung: {profd.stderr}')
    for figures in profd.stats['targets']:
        check('no_capture' not in figures['missed'], f'{figures}')
    check_untouched(hostile)
    check_untouched(other)


def test_userfaultfd(box):
    need_root()
    look_around(box, 'uffd')


def test_fuse(box):
    need_fuse()
    look_around(box, 'fuse')


def test_fuse_that_never_answers(box):
    need_fuse()
    look_around(box, 'jam')


def test_hang_in_a_race(box):
    """A page is removed between the look and the read. This makes capture
    hang. The target is excluded for good, and the other one goes on."""
    need_root()
    hostile = hang_target(box, 'race')
    other = box.target('shares')
    profd = box.profd([other, hostile], '--rate', '1000', '--chunk-seconds',
                      '1')
    profd.wait_attached()
    old = capture_of(profd)
    go_deep(hostile)
    win_race(profd, hostile)
    new = wait_replaced(profd, old, time.monotonic())
    wait_error(profd, HUNG.format(hostile.pid))
    wait_for(lambda: harness.tracer(other.pid) == new,
             'the other target is traced again')
    again = time.time()
    check_untouched(hostile)
    # The time of two chunks without a further hang.
    profd.wait_chunks(2)
    check(capture_of(profd) == new, 'capture was replaced once more')
    profd.signal(signal.SIGINT)
    profd.finish(status=1)
    check(profd.stderr.count('is no longer profiled') == 1, 'one line says it')
    check(samples_after(profd, other.pid, again) > 0,
          'no samples of the other target after capture was replaced')
    check_stats(profd, other)
    check_untouched(hostile)
    check_untouched(other)


def test_hung_from_the_start(box):
    """capture hangs at one of the first looks. This is the only target."""
    need_root()
    hostile = hang_target(box, 'race')
    go_deep(hostile)
    profd = box.profd([hostile], '--rate', '1000')
    win_race(profd, hostile)
    profd.finish(status=1)
    check(re.search(HUNG.format(hostile.pid), profd.stderr),
          f'no error line: {profd.stderr}')
    check_untouched(hostile)


def test_interrupted_while_it_hangs(box):
    """^C comes before the broker has given up waiting for the heartbeat."""
    need_root()
    hostile = hang_target(box, 'race')
    profd = box.profd([hostile], '--rate', '1000').wait_attached()
    go_deep(hostile)
    win_race(profd, hostile)
    profd.signal(signal.SIGINT)
    profd.finish(status=1)
    check_untouched(hostile)


def test_capture_that_cannot_be_killed(box):
    """A FUSE server that takes a request and does not answer it. The kernel
    waits for it, even if capture is killed; the broker does not."""
    need_fuse()
    hostile = hang_target(box, 'race-jam')
    profd = box.profd([hostile], '--rate', '1000').wait_attached()
    old = capture_of(profd)
    go_deep(hostile)
    win_race(profd, hostile)
    profd.finish(status=1)
    check(re.search(HUNG.format(hostile.pid), profd.stderr) and
          re.search(rf'pid {old}\) cannot be killed', profd.stderr),
          f'no error line: {profd.stderr}')
    states = [harness.state(tid) for tid in harness.threads(old)]
    check('D' in states, f'capture was not stuck: {states}')
    # When the server ends, capture is free, and ends.
    hostile.end()
    wait_for(lambda: all(harness.state(tid) in ('', 'Z')
                         for tid in harness.threads(old)),
             'the end of capture')


def test_files_that_hang(box):
    """A target whose executable cannot be opened. It is profiled nevertheless,
    by addresses, and the other target with names."""
    need_fuse()
    hostile = hang_target(box, 'code')
    other = box.target('shares')
    profd = box.profd([other, hostile], '--chunk-seconds', '1')
    profd.wait_attached()
    old = capture_of(profd)
    go_deep(hostile)
    wait_error(profd, f'sentry-profd: opening a file of process {hostile.pid} '
                      'hangs: .*')
    since = time.time()
    profd.wait_chunks(4)
    check(capture_of(profd) == old, 'capture was replaced, and did not hang')
    profd.signal(signal.SIGINT)
    profd.finish(status=1)
    check(samples_after(profd, other.pid, since) > 0,
          'no samples of the other target')
    names = {f.get('function') for c in profd.chunks
             for f in c['profile']['frames']}
    check('busy_seventy' in names, f'the other target has no names: {names}')
    hostile.end()


def test_pid_file(box):
    """A pid file on FUSE whose server does not answer is excluded. Processes
    are still found, and other pid files are read."""
    need_fuse()
    mount = box.make_dir('mount')
    hostile = box.target('hang', 'code', mount)
    hung = f'/proc/{hostile.pid}/root{mount}/file'
    service = Service(box, {'job': {}, 'web': {}})
    path = service.dir / 'job.pid'
    sections = {'hung': {'exe': None, 'pid_file': hung},
                'job': {'pid_file': path}, 'web': {}}
    service.exe['hung'] = None
    service.reload(sections)
    line = f'pid_file {hung} is not read: it is not on a local file system'
    wait_error(service.profd, f'sentry-profd: warning: {line}.*')
    web, job = service.start('web'), service.start('job')
    path.write_text(f'{job.pid}\n')
    service.wait_profiled(web.pid, job.pid)
    check(len(re.findall(line, service.profd.stderr)) == 1, 'it is said once')
    # A reload tries the file again.
    service.reload(sections)
    wait_for(lambda: len(re.findall(line, service.profd.stderr)) == 2,
             'it is tried again')
    check(service.is_profiled(web.pid) and service.is_profiled(job.pid),
          'a process was let go of')
    service.stop()
    hostile.end()


def test_stopped_capture(box):
    """SIGSTOP to capture is no target's fault, so all targets stay."""
    targets = [box.napper() for _ in range(2)]
    profd = box.profd(targets, '--chunk-seconds', '1').wait_attached()
    old = capture_of(profd)
    since = time.monotonic()
    os.kill(old, signal.SIGSTOP)
    wait_replaced(profd, old, since)
    profd.wait_attached()
    again = time.time()
    for target in targets:
        wait_for(lambda t=target: samples_after(profd, t.pid, again) > 0,
                 'samples after capture was replaced')
    profd.interrupt()
    for target in targets:
        check_stats(profd, target)
        check_untouched(target)


def stand_still(profd):
    """Returns the error line, if capture was replaced."""
    capture = capture_of(profd)
    for pid in profd.pid, capture:
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: harness.state(pid) == 'T', f'{pid} is stopped')
    since = time.monotonic()
    wait_for(lambda: time.monotonic() > since + 1.5, 'the beat is old')
    # The broker is continued first, and finds an old heartbeat.
    for pid in profd.pid, capture:
        os.kill(pid, signal.SIGCONT)
    profd.wait_chunks(2)
    return [] if capture_of(profd) == capture and \
        'heartbeat' not in profd.stderr else [profd.stderr]


def test_all_stood_still(box):
    """Neither the broker nor capture has a processor. capture's old heartbeat
    is then no fault, unless capture is stopped for longer, as when the test
    gets no processor between its two signals."""
    target = box.napper()

    def turn():
        profd = box.profd([target], '--chunk-seconds', '1').wait_attached()
        found = stand_still(profd)
        profd.interrupt()
        check_untouched(target)
        return found
    harness.in_turns(turn)


def stop(profd, kind):
    pid, = wait_for(lambda: profd.helpers()[kind], kind)
    os.kill(pid, signal.SIGSTOP)


def test_stopped_unwind(box):
    """No process makes the last chunk, and the broker does not wait long for
    it."""
    target = box.napper()
    profd = box.profd([target]).wait_attached()
    stop(profd, 'unwind')
    profd.interrupt(status=3)
    check(profd.chunks == [], 'a chunk of nobody')
    check_untouched(target)


def test_stopped_ship(box):
    """A second signal ends the wait for the last envelopes."""
    target = box.napper()
    profd = box.profd([target]).wait_attached()
    stop(profd, 'ship')
    profd.wait_looks()
    profd.signal(signal.SIGINT)
    wait_for(lambda: list(profd.output.glob('.*.part')),
             'an envelope that is not written')
    profd.signal(signal.SIGINT)
    profd.finish(3)
    chunks = profd.stats['chunks']
    check(chunks['made'] == 1 and chunks['written'] == 0 and
          chunks['discarded'] == {'shutdown': 1}, f'{chunks}')
    check(not profd.output.exists(), 'something of it is left')
    check_untouched(target)


if __name__ == '__main__':
    harness.main(globals())
