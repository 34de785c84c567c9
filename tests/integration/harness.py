"""The common parts of the integration tests.

A test is a function test_NAME(box). A file of tests ends with

    if __name__ == '__main__':
        harness.main(globals())

which runs its tests in order (or those whose names are given), prints a line
for each, and exits with 0, 1, or 77 if all tests that ran were skipped. A test
fails by an exception; check() raises one.

The box has a directory of its own and ends all processes that were started
through it, even if the test fails or is ended by a signal. A process that the
daemon leaves behind is a failure of the test. The harness sees such processes
because it is their subreaper.

Executables are taken from the directory $BUILD (default: build).
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback

import sanitized
# Tests import the names of these modules from here.
from patience import (PATIENCE_S, POLL_S, Failure, Skip, check, in_turns,
                      stretch, wait_for)
from proc import (blocked, children, cpu_seconds, descriptors, exe_name, in_call,
                  proc_status, proc_text, state, threads, tracer, wait_work)
from programs import (ALL_LOST, BUILD, PR_SET_PDEATHSIG, ROOT, Envelope, Profd, Program,
                      Server, environment, filters_kill, libc)

__all__ = ['ALL_LOST', 'BUILD', 'Box', 'Envelope', 'Failure', 'PATIENCE_S', 'POLL_S',
           'PR_SET_CHILD_SUBREAPER', 'PR_SET_PDEATHSIG', 'Profd', 'ROOT',
           'Skip', 'blocked', 'check', 'children', 'cpu_seconds',
           'descriptors', 'environment', 'exe_name', 'filters_kill', 'free_port', 'in_call', 'in_turns',
           'libc', 'main', 'proc_status', 'proc_text', 'state', 'stretch',
           'threads', 'tracer', 'wait_for', 'wait_work']

PR_SET_CHILD_SUBREAPER = 36

# Lines on stderr of a process of sentry-profd that dies of its own fault: from
# the sanitizers, assert(3) and the checks of glibc (stack, fortify, heap), and
# the broker's line about a child that its seccomp filter has ended (SIGSYS).
# The broker restarts the child, so only this line shows the fault.
FAULT = re.compile(
    r'^.*(?:ERROR: AddressSanitizer|:\d+:\d+: runtime error: |: Assertion `|'
    r'\*\*\* .* \*\*\*: terminated|(?:free|malloc|realloc)\(\): |corrupted (?:size|double)|'
    r'double free or corruption|'
    rf'was ended by signal {signal.SIGSYS.value}\b).*$', re.M)

held = []


def free_port():
    """Returns a port on loopback on which no process listens.

    The port stays bound to a socket that does not listen, until the test's
    end. So the kernel does not use it for any other process, not even as the
    near end of a connection. A process that binds to it needs SO_REUSEADDR, as
    every server has.
    """
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', 0))
    held.append(s)
    return s.getsockname()[1]


class Box:
    """A directory, and the programs that one test started."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='profd-test.'))
        # Programs of other users are started in it, too.
        self.dir.chmod(0o755)
        self.programs = []
        self.n = 0

    def make_dir(self, name):
        self.n += 1
        path = self.dir / f'{self.n}-{name}'
        path.mkdir()
        return path

    def start(self, argv, cls=Program, **options):
        """Starts a program; options go to subprocess.Popen."""
        self.n += 1
        name = f'{self.n}-{os.path.basename(str(argv[0]))}'
        program = cls(argv, self.dir / name, **options)
        self.programs.append(program)
        return program

    def target(self, name, *args, **options):
        """Starts a program of tests/targets/ and waits for its "ready"."""
        program = self.start([BUILD / 'targets' / name, *args], **options)
        program.wait_line('ready.*')
        return program

    def napper(self):
        """Starts a program of two threads that mostly sleep, for tests in which it does not
        matter what is profiled: "shares" takes a processor all the time."""
        return self.target('naps', 2, 500, 20000)

    def profd(self, targets, *args, output=True, exe=None, wrapper=(),
              directory=None, **options):
        """Starts sentry-profd on targets: programs or pids.

        With output, --output is a new directory. Always with --stats, and
        without the table unless table=True. wrapper: a command that executes
        its arguments. directory: where its files are written.
        """
        pids = [getattr(t, 'pid', t) for t in targets]
        directory = directory or self.make_dir('profd')
        argv = [*wrapper, exe or BUILD / 'sentry-profd']
        for pid in pids:
            argv += ['--pid', pid]
        if output is True:
            output = directory / 'output'
        if output:
            argv += ['--output', output]
        if not options.pop('table', False):
            argv.append('--quiet')
        stats = directory / 'stats.json'
        # Targets know their own functions, and not what the compiler has inlined into them.
        # lines=True: the default, as users have it.
        if not options.pop('lines', False) and not {'--symbols', '--config'} & set(args):
            argv += ['--symbols', 'names']
        # No CPU budget, unless the test sets one.
        if '--cpu-budget' not in args:
            argv += ['--cpu-budget', '0']
        # The machine's default spool may have chunks for other servers.
        if '--spool' not in args:
            argv += ['--spool', 'none']
        if '--shutdown-timeout' not in args:
            argv += ['--shutdown-timeout', PATIENCE_S]
        argv += ['--stats', stats, *args]
        return self.start(argv, cls=Profd, pids=pids, stats_path=stats,
                          output=output or directory, **options)

    def profile(self, targets, *args, work=0.0, status=0, **options):
        """Runs sentry-profd until it has seen some work, so that the result
        does not depend on the speed of the machine. work: seconds of processor
        time that each target must use while it is profiled. status:
        sentry-profd's exit status."""
        profd = self.profd(targets, *args, **options).wait_attached()
        goals = {pid: cpu_seconds(pid) + work for pid in profd.pids}
        profd.wait_looks()
        wait_for(lambda: all(cpu_seconds(pid) >= goal
                             for pid, goal in goals.items()),
                 f'{work} s of work')
        return profd.interrupt(status=status)

    def server(self, **options):
        return Server(self, **options)

    def end(self):
        """Ends all programs; returns a description of what was left behind."""
        for program in reversed(self.programs):
            program.end()
        while held:
            held.pop().close()
        left = end_orphans()
        return ', '.join(left)

    def report(self):
        return ''.join(p.report() for p in self.programs)

    def faults(self):
        """Returns the lines of processes that died of their own fault. A
        SIGSEGV that a test sent does not count: its address consists of the
        sender's ids."""
        sent = f' address 0x{os.getuid() << 32 | os.getpid():012x} '
        return [line for path in sorted(self.dir.glob('*.stderr'))
                for line in FAULT.findall(path.read_text(errors='replace'))
                if sent not in line]

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def end_orphans():
    """Ends the processes that the daemon left behind; returns their names. The
    broker's helpers end by themselves after the broker, but not at once.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        reap()
        alive = children(os.getpid())
        if not alive:
            return []
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_S)
    names = [f'{exe_name(pid)} ({pid}, {state(pid)})' for pid in alive]
    for pid in alive:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return names


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def run_test(name, function):
    """Runs one test; returns 'ok', 'skip' or 'FAIL'."""
    box = Box()
    start = time.monotonic()
    word, text, details = 'ok', '', ''
    try:
        why = sanitized.left_out(pathlib.Path(sys.argv[0]).stem, name)
        if why:
            raise Skip(f'not with sanitizers: {why}')
        function(box)
    except Skip as e:
        word, text = 'skip', str(e)
    except Failure as e:
        word, text = 'FAIL', str(e)
        details = ''.join(traceback.format_tb(e.__traceback__))
    except Exception as e:
        word, text = 'FAIL', f'{type(e).__name__}: {e}'
        details = traceback.format_exc()
    finally:
        left = box.end()
        if left and word == 'ok':
            word, text = 'FAIL', f'left behind: {left}'
        faults = box.faults()
        if faults:
            word, text = 'FAIL', f'{"; ".join(faults)} {text}'
        report = box.report()
        box.remove()
    seconds = time.monotonic() - start
    print(f'{word:5} {name} ({seconds:.1f} s)' + (f': {text}' if text else ''),
          flush=True)
    if word == 'FAIL':
        print(details + report, flush=True)
    return word


def main(names):
    """Runs the tests among names, a module's globals()."""
    # With an exception the box ends its programs; the default action of the
    # signal would not.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if not (BUILD / 'sentry-profd').exists():
        sys.exit(f'{BUILD}/sentry-profd is not there: make, or set BUILD')
    wanted = [a if a.startswith('test_') else 'test_' + a
              for a in sys.argv[1:]]
    tests = {n: f for n, f in names.items()
             if n.startswith('test_') and callable(f)}
    unknown = set(wanted) - set(tests)
    if unknown:
        sys.exit(f'no such test: {", ".join(sorted(unknown))}')
    words = [run_test(n, f) for n, f in tests.items()
             if not wanted or n in wanted]
    if 'FAIL' in words:
        sys.exit(1)
    sys.exit(77 if words and set(words) == {'skip'} else 0)
