#!/usr/bin/python3
"""--sampler perf: processes are profiled without being traced. Times and stacks are those of the
programs, debuggers and crash reporters work meanwhile, and no program with other rights has a
sample."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import struct
import subprocess

import chunk_rules
import control
import crashes
import harness
import life
import stranger
import test_leak_check as leak_check
import test_life_jobs as life_jobs
import test_transparency_calls as transparency_calls
from account import check_sums
from harness import BUILD, Skip, check, cpu_seconds, wait_for
from layout import Layout
from service import tell
from test_control import configured
from test_doctor import Findings
from test_stacks import MODES
from test_stacks import start as start_mode

harness.filters_kill()

PERF = '--sampler', 'perf'


def need_perf(box):
    profd = box.profd([box.napper()], *PERF, '--duration', '0.1')
    if profd.wait() == 2:
        raise Skip(profd.stderr.splitlines()[-1])


def started(box, targets, *args):
    need_perf(box)
    return box.profd(targets, *PERF, *args).wait_attached()


def wait_work(targets, seconds):
    goals = {t.pid: cpu_seconds(t.pid) + seconds for t in targets}
    wait_for(lambda: all(cpu_seconds(pid) >= goal for pid, goal in goals.items()),
             f'{seconds} s of work')


def profiled(box, targets, *args, work=0.0):
    profd = started(box, targets, *args)
    wait_work(targets, work)
    check_untraced(targets)
    return profd.interrupt()


def check_untraced(targets):
    traced = [tid for t in targets for tid in harness.threads(t.pid) if harness.tracer(tid)]
    check(traced == [], f'traced: {traced}')


def check_well(profd, rate_hz=chunk_rules.RATE_HZ):
    found = [t for e in profd.envelopes for t in chunk_rules.problems(e, rate_hz=rate_hz)]
    check(found == [], f'{found[:5]}')
    check_sums(profd.stats, arrived='written')
    check(profd.stats['stops'] == 0 and profd.stats['event_stops'] == 0, f'{profd.stats}')


def bars(profd):
    return [b for c in profd.chunks for b in chunk_rules.bars(c)]


def test_stacks(box):
    """Programs that know their stacks, blocked in each of the ways of test_stacks."""
    programs = dict(start_mode(box, 'unw_o2', mode) for mode in MODES)
    layouts = {p.pid: Layout(p.pid) for p in programs}
    profd = profiled(box, list(programs))
    check_well(profd)
    seen = set()
    for envelope in profd.envelopes:
        pid, = map(int, envelope.chunk['profile']['thread_metadata'])
        found = chunk_rules.problems(envelope, layouts[pid])
        check(found == [], f'{found[:5]}')
        expected, = [e for p, e in programs.items() if p.pid == pid]
        for bar in chunk_rules.bars(envelope.chunk):
            names = [n for n in bar.names if n in expected]
            check(names == expected, f'{bar.names}, not {expected}')
            seen.add(pid)
    check(seen == {p.pid for p in programs}, f'{len(seen)} of {len(programs)}')


def check_ticks(profd, rate_hz=chunk_rules.RATE_HZ):
    """Each sample of a running thread lasts for one tick, but for those of the last tick."""
    told = sum(b.seconds for b in bars(profd) if b.names)
    ran = profd.stats['times']['running_s']
    check(abs(told - ran) < 2.5 / rate_hz, f'{told:.3f} s told, {ran} s sampled')


def told_and_ran(box, target, seconds, rate_hz=202):
    """Returns the seconds that a profile tells, those of samples included whose threads had ended
    before the rings were read; the seconds for which it counts that no stack is known; and the
    least and the most that its process ran meanwhile, by the scheduler."""
    before = cpu_seconds(target.pid)
    profd = started(box, [target], '--mode', 'cpu', '--rate', rate_hz)
    begin = cpu_seconds(target.pid)
    wait_for(lambda: cpu_seconds(target.pid) >= begin + seconds, 'processor time')
    least = cpu_seconds(target.pid) - begin
    check_untraced([target])
    profd.interrupt()
    check_sums(profd.stats, arrived='written')
    told = sum(b.seconds for b in bars(profd) if b.names)
    check_ticks(profd, rate_hz)
    missed = {k: n / rate_hz for k, n in profd.stats['missed'].items()}
    return (told + missed.get('thread_exited', 0), missed.get('no_stack', 0), least,
            cpu_seconds(target.pid) - before)


def check_told(box, target, seconds=2, hands_over=False):
    told, unknown, least, most = told_and_ran(box, target, seconds)
    # Five standard deviations of 202 looks a second, and what sentry-profd takes to start and end.
    luck = 5 / (202 * seconds) ** 0.5
    # The timer of a virtual processor can come too late while threads hand over, and the kernel then
    # leaves samples out, those of perf record -a, too: 104 to 185 of 404. They must be counted.
    known = told + unknown if hands_over else told
    check(least * (1 - luck) < known and told < most * (1 + luck),
          f'{told:.2f} s are told, {unknown:.2f} missed, of {least:.2f} to {most:.2f}')


def test_processor_time(box):
    check_told(box, box.target('shares'))


def test_threads_that_hand_over(box):
    check_told(box, box.target('handoff', 'cond', '15'), hands_over=True)


def test_short_threads(box):
    """Threads that live for a millisecond: most have ended when the rings are read. They begin 200
    times a second, so 202 looks a second would see each in nearly the same state."""
    target = box.target('short_threads')
    told, _, least, most = told_and_ran(box, target, 0.5, rate_hz=173)
    check(least * 0.5 < told < most * 1.5, f'{told:.2f} s of {least:.2f} to {most:.2f}')


def test_shares_of_functions(box):
    """busy_seventy has 70 % of the processor time, busy_thirty the rest."""
    profd = profiled(box, [box.target('shares')], '--rate', '202', work=2)
    check_well(profd, 202)
    seconds = collections.Counter()
    for bar in bars(profd):
        seconds[next((n for n in bar.names if n in ('busy_seventy', 'busy_thirty', 'sleeper')),
                     '')] += bar.seconds
    share = seconds['busy_seventy'] / (seconds['busy_seventy'] + seconds['busy_thirty'])
    check(0.55 < share < 0.85 and seconds['sleeper'] > 0, f'{seconds}')


def check_no_stop(stats):
    counts = {k: stats[k] for k in ('stops', 'event_stops', 'rewritten', 'continued')}
    check(not any(counts.values()), f'{counts}')


def test_calls(box):
    """Each kind of call that waits has the result that it has alone."""
    need_perf(box)
    check_no_stop(transparency_calls.watch(box, '1000', more=PERF))


def test_signals_and_jobs(box):
    """Signals arrive once, and a parent sees each stop of its child once."""
    need_perf(box)
    life.compare(box, 'life_signals', life_jobs.SEED, 651, stops=False, more=PERF)
    life_jobs.check_view(box, PERF)


def test_a_stack_above_the_copy(box):
    """It ends where the kernel's copy does, and a line says how many of them there are."""
    profd = profiled(box, [box.target('deep_frames', '40')], '--mode', 'cpu', work=0.5)
    found = re.search(r'(\d+) of (\d+) stacks are larger than the 16 KB that sampler = perf copies',
                      profd.stderr)
    check(found and 0 < int(found[1]) <= int(found[2]), profd.stderr)
    depths = {b.names.count('descend') for b in bars(profd) if b.names}
    check(depths and max(depths) in range(10, 17), f'{depths}')
    profd = profiled(box, [box.target('deep_frames', '10')], '--mode', 'cpu', work=0.5)
    check('are larger than' not in profd.stderr, profd.stderr)
    check({b.names.count('descend') for b in bars(profd) if b.names} == {11}, 'all callers')


def test_full_rings(box):
    """While capture does not run, the rings get full. What is lost counts as missed, and no
    sample lasts until capture runs again."""
    target = box.target('shares')
    profd = started(box, [target], '--mode', 'cpu')
    capture, = profd.helpers()['capture']
    # sentry-profd as well, which would replace a capture that hangs.
    for pid in profd.pid, capture:
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda p=pid: harness.state(p) == 'T', f'{pid} is stopped')
    wait_work([target], 1)
    for pid in profd.pid, capture:
        os.kill(pid, signal.SIGCONT)
    wait_work([target], 0.5)
    profd.interrupt()
    check_well(profd)
    missed = profd.stats['missed']
    check(missed.get('sampler_late', 0) > 0 and 'exec' not in missed, f'{missed}')
    check_ticks(profd)


def test_throttled(box):
    """The kernel permits fewer samples than the rate: the others count as missed."""
    limit = pathlib.Path('/proc/sys/kernel/perf_event_max_sample_rate')
    before = limit.read_text()
    try:
        limit.write_text('1')
    except OSError as e:
        raise Skip(f'{limit} cannot be written: {e.strerror}') from e
    try:
        profd = profiled(box, [box.target('shares')], '--rate', '997', work=0.5)
    finally:
        limit.write_text(before)
    check_well(profd, rate_hz=997)
    missed = profd.stats['missed']
    check(missed.get('throttled', 0) > 0, f'{missed}')


def test_no_other_process(box):
    """Only threads of the target are in the profile, though the rings have all processes."""
    target, other = box.target('shares'), box.target('handoff', 'cond', '15')
    profd = profiled(box, [target], work=1)
    check_well(profd)
    tids = {tid for c in profd.chunks for tid in c['profile']['thread_metadata']}
    check(tids == {str(t) for t in harness.threads(target.pid)} and other.running(), f'{tids}')


def test_birth_and_end(box):
    """--children: each process has its profile, and the run ends with the last one."""
    need_perf(box)
    text = ('import os, time\n'
            'def work():\n    end = time.process_time() + 0.5\n'
            '    while time.process_time() < end: pass\n'
            'if os.fork() == 0:\n    work()\n    os._exit(0)\n'
            'work()\nos.wait()\n')
    profd = box.profd([], *PERF, '--children', '--', '/usr/bin/python3', '-c', text).finish()
    check_well(profd)
    ran = {min(c['profile']['thread_metadata']): sum(b.seconds for b in chunk_rules.bars(c) if b.names)
           for c in profd.chunks}
    check(len(ran) == 2 and min(ran.values()) > 0.1, f'{ran}')


def test_grandchildren(box):
    """A child that forks before capture knows of it, as a compiler's driver does."""
    need_perf(box)
    text = ('import os, time\n'
            'if os.fork() == 0:\n'
            '    if os.fork() == 0:\n'
            '        end = time.process_time() + 0.5\n'
            '        while time.process_time() < end: pass\n'
            '        os._exit(0)\n'
            '    os.wait()\n'
            '    os._exit(0)\n'
            'os.wait()\n')
    profd = box.profd([], *PERF, '--children', '--mode', 'cpu', '--', '/usr/bin/python3', '-c',
                      text).finish()
    check_well(profd)
    ran = sum(b.seconds for b in bars(profd) if b.names)
    check(ran > 0.3, f'{ran:.2f} s of 0.5 s')


def test_an_exec(box):
    """After an exec the samples are those of the new program."""
    target = box.start(['sh', '-c', f'echo ready; read go; exec {BUILD}/targets/shares'],
                       stdin=subprocess.PIPE)
    target.wait_line('ready')
    profd = started(box, [target])
    tell(target, 'go')
    target.wait_line(r'ready \d+')
    profd.wait_looks()
    profd.interrupt()
    check_well(profd)
    names = {n for b in bars(profd) for n in b.names}
    check({'busy_seventy', 'sleeper'} <= names, f'{names}')


def test_debuggers_attach_meanwhile(box):
    """gdb and strace attach to a process that is profiled, and detach, and the profile goes on."""
    for name in ('gdb', 'strace'):
        if shutil.which(name) is None:
            raise Skip(f'{name} is not installed')
    target = box.target('shares')
    profd = started(box, [target], '--chunk-seconds', '1')
    gdb = box.start(['gdb', '-q', '-batch', '-p', str(target.pid), '-ex', 'thread apply all bt'],
                    stdin=subprocess.DEVNULL)
    check(gdb.wait() == 0 and 'sleeper' in gdb.stdout, gdb.report())
    strace = box.start(['strace', '-f', '-p', str(target.pid), '-o', box.dir / 'calls'])
    calls = box.dir / 'calls'
    wait_for(lambda: calls.exists() and calls.read_text() != '', 'a call in strace')
    profd.wait_looks()
    strace.signal(signal.SIGINT)
    strace.wait()
    profd.wait_chunks()
    profd.interrupt()
    check_sums(profd.stats, arrived='written')
    check(profd.stats['samples_taken'] > 0 and target.running(), f'{profd.stats}')


def test_a_process_that_is_traced(box):
    """A process that a debugger has stopped at nothing is profiled like any other."""
    target = box.target('shares')
    tracer = box.target('tracer', target.pid)
    need_perf(box)
    profd = box.profd([target], *PERF, '--duration', '1').finish()
    check(profd.stats['samples_taken'] > 0 and harness.tracer(target.pid) == tracer.pid,
          f'{profd.stats}')


def test_doctor(box):
    """A tracer, LeakSanitizer and a crash reporter are no obstacles."""
    target, leaks, crash = box.target('shares'), leak_check.target(box, 'leaks_asan'), \
        crashes.start(box, way='helper')
    tracer = box.target('tracer', target.pid)
    socket = box.dir / 'socket'
    started(box, [target, leaks, crash], '--socket', socket)
    found = Findings(box, target.pid, socket=socket)
    found.check('samplers', 'ok', '^the daemon uses perf$')
    found.check('tracer', 'ok', f'^process {tracer.pid} ')
    Findings(box, leaks.pid, socket=socket).check('LeakSanitizer', 'ok', 'leaks_asan has it')
    Findings(box, crash.pid, socket=socket).check('crash reports', 'ok', 'sampler = perf traces no')
    leak_check.end(leaks)


def test_crash_reporter(box):
    """The handler's reporter attaches to all threads while the process is profiled."""
    program = crashes.start(box, way='helper')
    profd = started(box, [program])
    crashes.crash(program)
    profd.finish()
    check_sums(profd.stats, arrived='written')
    check('crash' not in profd.stats['missed'], f'{profd.stats}')


def test_leak_sanitizer(box):
    """It traces its own process, which is profiled: leak_check does not apply."""
    target = leak_check.target(box, 'leaks_asan')
    profd = started(box, [target])
    leak_check.end(target)
    profd.finish()
    check_sums(profd.stats, arrived='written')
    check(profd.stats['samples_taken'] > 0, f'{profd.stats}')
    leak_check.check_ran(*leak_check.command(box, leak_check.TARGETS / 'leaks_asan', options=PERF))


def test_a_program_with_other_rights(box):
    """The process executes a set-user-ID program: the unwind process of its user gets no sample of
    that. (It has a profile of its own, from another unwind process.)"""
    stranger.need_root()
    if os.statvfs(box.dir).f_flag & os.ST_NOSUID:
        raise Skip('no set-user-ID programs in the directory of the test')
    directory = stranger.copy(box, ['targets/shares'])
    privileged = directory / 'privileged'
    privileged.write_bytes((directory / 'shares').read_bytes())
    privileged.chmod(0o4755)
    target = box.start(['sh', '-c', f'echo ready; read go; exec {privileged}'],
                       stdin=subprocess.PIPE, **stranger.options())
    target.wait_line('ready')
    profd = started(box, [target], '--mode', 'cpu', '--rate', '997')
    tell(target, 'go')
    target.wait_line(r'ready \d+')
    goal = cpu_seconds(target.pid) + 2
    wait_for(lambda: cpu_seconds(target.pid) >= goal, 'work of the program')
    check_untraced([target])
    profd.interrupt()
    check_sums(profd.stats, arrived='written')
    check(profd.stats['rights_changes'] == 1, f'{profd.stats}')
    seconds = collections.Counter()
    for chunk in profd.chunks:
        images = {pathlib.Path(i['code_file']).name for i in chunk['debug_meta']['images']}
        seconds['privileged' in images] += sum(b.seconds for b in chunk_rules.bars(chunk)
                                               if b.names)
    # What the shell needs for the exec.
    check(seconds[True] > 0.5 and seconds[False] < 0.2, f'{seconds}')


def test_attach_knows_when_samples_are_taken(box):
    """By the daemon's word: the process has no tracer, for which it would wait in vain."""
    need_perf(box)
    target = box.target('shares')
    profd, ctl, _ = configured(box, '[profiler]\nsampler = perf\n')
    ctl.run('attach', target.pid)
    ctl.wait_state(target.pid, 'profiling')
    wait_for(lambda: ctl.target(target.pid)['samples_taken'], 'samples')
    with control.dial(ctl.path) as s:
        s.send(control.hello())
        control.answer(s)
        s.send(control.request(control.PROFILER_ID, target.pid))
        check(struct.unpack_from('=I', s.recv(4096), 32)[0] == 1, 'not sampled')
    profd.interrupt()


def test_programs_of_others_100_times(box):
    """Users have their shells profiled, which become chage and su. Their profiles are these users',
    so not one sample of such a program may get into one."""
    stranger.need_root()
    need_perf(box)
    commands = [shutil.which(c) for c in ('chage', 'su')]
    if not all(c and os.stat(c).st_mode & (stat.S_ISUID | stat.S_ISGID) for c in commands):
        raise Skip('no chage or su with the rights of others')
    profd, ctl, _ = configured(box, '[sentry]\nuser_attach = send\n'
                               '[profiler]\nsampler = perf\nrate_hz = 997\n')
    for n in range(100):
        uid = stranger.UID + n % 20  # sentry-profd takes one process of a user a second
        shell = box.start(['sh', '-c', f'echo ready; read go; exec {commands[n % 2]} --help'],
                          stdin=subprocess.PIPE, **stranger.options(uid))
        shell.wait_line('ready')
        ctl.run('attach', shell.pid, uid=uid)
        ctl.wait_state(shell.pid, 'profiling')
        tell(shell, 'go')
        shell.wait()
    wait_for(lambda: ctl.status()['daemon']['profiling'] == 0, 'the last one to be left')
    profd.interrupt()
    images = collections.Counter(
        pathlib.Path(f['package']).name for c in profd.chunks for b in chunk_rules.bars(c)
        for f in b.frames if 'package' in f)
    check(profd.stats['rights_changes'] > 90 and images and
          not {'chage', 'su'} & set(images), f'{images} {profd.stats}')


def test_another_pid_namespace(box):
    """sentry-profd in a pid namespace of its own: samples of processes outside have the pid 0."""
    stranger.need_root()
    need_perf(box)
    box.target('shares')
    directory = box.make_dir('namespace')
    profd = box.start(['unshare', '-p', '-f', '--mount-proc', BUILD / 'sentry-profd', *PERF,
                       '--cpu-budget', '0', '--output', directory / 'output',
                       '--stats', directory / 'stats.json', '--spool', 'none', '--',
                       'sh', '-c', 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'])
    check(profd.wait() == 0, profd.report())
    chunks = [harness.Envelope(p.read_bytes(), p.name).chunk
              for p in sorted((directory / 'output').glob('*.envelope'))]
    names = {n for c in chunks for b in chunk_rules.bars(c) for n in b.names}
    stats = json.loads((directory / 'stats.json').read_text())
    check(stats['captured'] > 5 and names and 'busy_seventy' not in names, f'{names} {stats}')


CAP_PERFMON = 38


def test_the_capability_is_capture_s_alone(box):
    stranger.need_root()
    profd = started(box, [box.napper()])
    has = {kind: int(harness.proc_status(pid, 'CapPrm'), 16) >> CAP_PERFMON & 1
           for kind, pids in profd.helpers().items() for pid in pids}
    check(has == {'capture': 1, 'unwind': 0, 'ship': 0}, f'{has}')
    profd.interrupt()


def test_without_the_capability(box):
    """No fall-back: a line says what is missing and what to do, and nothing is profiled."""
    stranger.need_root()
    target = box.start(['sleep', '1000'])
    profd = box.profd([target], *PERF, wrapper=('capsh', '--drop=cap_perfmon,cap_sys_admin',
                                                '--', '-c', 'exec "$@"', '--'))
    if shutil.which('capsh') is None:
        raise Skip('capsh is not installed')
    check(profd.wait() == 2, profd.report())
    check('CAP_PERFMON is missing' in profd.stderr and 'sampler = ptrace' in profd.stderr,
          profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
