#!/usr/bin/python3
"""--children: the processes that a process forks are profiled, too, each
separately, from its birth on. No process is disturbed.
"""

import os
import re
import signal
import subprocess

import chunk_rules
import harness
import stranger
from account import check_sums
from harness import BUILD, check, wait_for
from service import tell
from test_control import listening

PYTHON = '/usr/bin/python3'
WORKS = 'import time\nwhile time.process_time() < 1: pass'
SHARES = BUILD / 'targets/shares'

# Forks two children that go on, one of which forks a further one.
FORKS = '''
import os, sys, time
def work():
    while True: pass
if os.fork() == 0:
    if os.fork() == 0: work()
    work()
print(f"ready {os.getpid()}", flush=True)
work()
'''


def descendants(pid):
    found = harness.children(pid)
    return found + [p for c in found for p in descendants(c)]


def functions(chunk):
    return {f.get('function') for f in chunk['profile']['frames']}


def started(box, *argv, **more):
    profd = box.profd([], '--children', '--chunk-seconds', '1', '--', *argv,
                      **more)
    pid = int(profd.wait_line(r'ready (\d+)')[1])
    return profd, pid


def check_well(profd):
    found = [t for e in profd.envelopes for t in chunk_rules.problems(e)]
    check(found == [], f'{found[:5]}')
    check_sums(profd.stats, arrived='written')


def test_children_that_are_born_while_capture_detaches(box):
    """To detach from one process, capture detaches from all for a moment."""
    parent, other = (box.start([BUILD / 'targets/prefork'], stdin=subprocess.PIPE)
                     for _ in range(2))
    for program in (parent, other):
        program.wait_line('ready.*')
    profd, ctl = listening(box, [parent, other], '--children')
    profd.wait_attached()
    for _ in range(10):
        parent.process.stdin.write(b'fork\n' * 20)
        parent.process.stdin.flush()
        ctl.run('detach', other.pid)
        wait_for(lambda: harness.tracer(other.pid) == 0, 'capture to detach')
        ctl.run('attach', other.pid)
        wait_for(lambda: harness.tracer(other.pid) != 0, 'capture to attach')
    born = wait_for(lambda: len(harness.children(parent.pid)) == 200 and
                    harness.children(parent.pid), 'the children')
    wait_for(lambda: all(map(harness.tracer, born)), 'capture to attach to all of them')
    profd.interrupt()


def test_the_table_of_processes_that_have_ended(box):
    """One table of all, with a line for each program."""
    profd = box.profd([], '--children', '--', 'sh', '-c', 'for i in 1 2 3; do "$0" -c "$1"; done',
                      PYTHON, WORKS, table=True)
    profd.finish()
    row = re.search(r'^ +(\d+\.\d\d) s .* 3  python3', profd.stderr, re.M)
    check(row and float(row[1]) > 0, f'no line of python3: {profd.stderr}')
    check(re.search(r' \d  (dash|sh|bash)$', profd.stderr, re.M), profd.stderr)
    check(profd.stderr.count('Hottest functions.') == 1 and
          re.search(r'\d s .*_PyEval_EvalFrameDefault', profd.stderr), profd.stderr)


def test_a_table_for_each_user(box):
    stranger.need_root()
    profd = box.profd([], '--children', '--', 'sh', '-c', '"$0" -c "$1"; setpriv --reuid $2 '
                      '--regid $2 --clear-groups "$0" -c "$1"',
                      PYTHON, WORKS, stranger.UID, table=True)
    profd.finish()
    found = re.findall(r'^Processes of uid (\d+):$', profd.stderr, re.M)
    check(set(found) == {'0', str(stranger.UID)}, profd.stderr)
    check(profd.stderr.count('Hottest functions.') == len(found), profd.stderr)


TAKES_A_USER = f'''
import os, sys
print("ready", flush=True)
sys.stdin.readline()
os.setuid({stranger.UID})
while True: pass
'''


def test_a_process_that_takes_a_user_is_one(box):
    """As the workers of a server that root starts."""
    stranger.need_root()
    target = box.start([PYTHON, '-c', TAKES_A_USER], stdin=subprocess.PIPE)
    target.wait_line('ready')
    profd = box.profd([target], '--children', '--debug').wait_attached()
    profd.wait_looks(30)
    tell(target, 'go')
    attached = f'attached to process {target.pid}\n'
    wait_for(lambda: profd.stderr.count(attached) == 2, 'the next run')
    harness.wait_work(target.pid, 0.5)
    profd.interrupt()
    check(profd.stats['rights_changes'] == 1 and len(profd.chunks) >= 2, f'{profd.stats}')
    check(len({c['profiler_id'] for c in profd.chunks}) == 1,
          f'{[c["profiler_id"] for c in profd.chunks]}')
    check_well(profd)


def test_forked_ones_have_profiles(box, start=started):
    profd, pid = start(box, PYTHON, '-c', FORKS)
    all_of_them = wait_for(lambda: len(descendants(pid)) == 2 and
                           [pid, *descendants(pid)], 'its descendants')
    profd.pids = all_of_them
    profd.wait_attached()
    for p in all_of_them:
        harness.wait_work(p, 0.2)
    profd.wait_chunks(3)
    for p in all_of_them:
        os.kill(p, signal.SIGKILL)
    profd.finish(137)
    profilers = {c['profiler_id'] for c in profd.chunks}
    check(len(profilers) == 3, f'{profilers}')
    check_well(profd)


def test_as_an_ordinary_user(box):
    """This needs no privileges, because the kernel attaches."""
    def start(box, *argv):
        profd = stranger.profd(box, [], '--children', '--chunk-seconds', '1',
                               '--', *argv)
        return profd, int(profd.wait_line(r'ready (\d+)')[1])
    test_forked_ones_have_profiles(box, start)


def test_of_a_process_that_runs(box):
    """With --pid the processes are profiled that it forks from then on. The
    run ends with the last one."""
    gate = box.make_dir('gate') / 'open'
    program = box.start(['sh', '-c',
                         'echo ready $$; while [ ! -e "$0" ]; do sleep 0.1; '
                         'done; "$1" & echo child $!', gate, SHARES])
    program.wait_line(r'ready (\d+)')
    profd = box.profd([program.pid], '--children', '--chunk-seconds', '1')
    profd.wait_attached()
    gate.touch()
    child = int(program.wait_line(r'child (\d+)')[1])
    check(program.wait() == 0, program.stderr)
    wait_for(lambda: harness.tracer(child), 'it is profiled')
    harness.wait_work(child, 1)
    check(profd.running(), 'the run has ended with the parent')
    os.kill(child, signal.SIGTERM)
    profd.finish()
    check(any('busy_seventy' in functions(c) for c in profd.chunks), 'no chunk')


def test_that_are_born_while_the_parent_is_released(box):
    """They and their children are profiled as soon as the parent is again, but not one that
    it had before --pid."""
    program = box.start(['sh', '-c', 'sleep 1000 & echo ready; read x; '
                         'sh -c "sleep 1000 & wait" & echo forked; wait'],
                        stdin=subprocess.PIPE)
    program.wait_line('ready')
    [before] = wait_for(lambda: harness.children(program.pid), 'its child')
    profd, ctl = listening(box, [program], '--children')
    profd.wait_attached()
    ctl.run('detach', program.pid)
    program.process.stdin.close()
    program.wait_line('forked')
    born = wait_for(lambda: len(found := descendants(program.pid)) == 3 and
                    [p for p in found if p != before], 'its descendants')
    try:
        check(not any(harness.tracer(p) for p in born), 'they have a tracer')
        ctl.run('attach', program.pid)
        wait_for(lambda: all(harness.tracer(p) for p in born), 'they are profiled')
        check(harness.tracer(before) == 0, 'the one before is profiled')
        profd.interrupt()
    finally:
        for pid in [before, *born]:
            os.kill(pid, signal.SIGKILL)
    check(program.wait() == 0, program.stderr)


def test_without_it_nobody_else(box):
    profd = box.profd([], '--', PYTHON, '-c', FORKS)
    pid = int(profd.wait_line(r'ready (\d+)')[1])
    profd.pids = [pid]
    profd.wait_attached()
    others = wait_for(lambda: len(descendants(pid)) == 2 and descendants(pid),
                      'its descendants')
    profd.wait_looks()
    check(not any(harness.tracer(p) for p in others), 'a child is traced')
    for p in [pid, *others]:
        os.kill(p, signal.SIGKILL)
    profd.finish(137)


# Makes short-lived processes by each system call; prints what the parent sees
# of them.
SHORT = '''
import os, signal, subprocess, sys, time
seen = []
for i in range(100):
    pid = os.fork()
    if pid == 0:
        os._exit(i)
    seen.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
for i in range(30):
    seen.append(subprocess.call(["sh", "-c", f"exit {i}"]))
    seen.append(os.waitstatus_to_exitcode(os.waitpid(
        os.posix_spawn("/bin/sh", ["sh", "-c", "kill -TERM $$"], os.environ),
        0)[1]))
for i in range(100):
    pid = os.fork()
    if pid == 0:
        signal.pause()
    fd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGSTOP)
    seen.append(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]))
    os.kill(pid, signal.SIGCONT)
    seen.append(os.WIFCONTINUED(os.waitpid(pid, os.WCONTINUED)[1]))
    os.kill(pid, signal.SIGKILL)
    import select
    select.select([fd], [], [])
    # If the pidfd reports the end, wait(2) has the status immediately.
    seen.append(os.waitpid(pid, os.WNOHANG)[1])
    os.close(fd)
print(seen, flush=True)
'''


def test_short_ones_end_as_without_us(box):
    without = box.start([PYTHON, '-c', SHORT])
    check(without.wait() == 0, without.stderr)
    profd = box.profd([], '--children', '--', PYTHON, '-c', SHORT).finish()
    check(profd.stdout == without.stdout, f'{profd.stdout}{without.stdout}')
    check('error' not in profd.stderr and 'ended before' not in profd.stderr,
          profd.stderr)


def test_each_that_lasts_has_a_chunk(box):
    """Many processes one after the other, with 0.3 s of work each."""
    text = ('for i in 1 2 3 4 5 6; do "$0" -c "import time\n'
            'while time.process_time() < 0.3: pass"; done')
    profd = box.profd([], '--children', '--', 'sh', '-c', text,
                      PYTHON).finish()
    busy = {c['profiler_id'] for c in profd.chunks
            if len(c['profile']['samples']) > 10 and
            any('python' in i['code_file'] for i in c['debug_meta']['images'])}
    check(len(busy) == 6, f'{len(busy)} of 6')


def test_daemon_is_killed(box):
    profd, pid = started(box, PYTHON, '-c', FORKS)
    all_of_them = wait_for(lambda: len(descendants(pid)) == 2 and
                           [pid, *descendants(pid)], 'its descendants')
    profd.pids = all_of_them
    profd.wait_attached()
    profd.process.kill()
    profd.wait()
    for p in all_of_them:
        wait_for(lambda p=p: harness.tracer(p) == 0, 'it is let go of')
        harness.wait_work(p, 0.1)
        os.kill(p, signal.SIGKILL)


def test_usage(box):
    profd = box.profd([], '--children').finish(2)
    check('--children: needs --pid, --name or a command' in profd.stderr,
          profd.stderr)


if __name__ == '__main__':
    harness.main(globals())
