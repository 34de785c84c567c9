"""Runs sentry-profd without --pid: the daemon finds the processes that its
configuration matches."""

import shutil
import signal
import subprocess

import control
from harness import BUILD, PATIENCE_S, check, threads, tracer, wait_for


class Service:
    """A daemon with one or more sections, and programs that only they match.

    sections: {name: {key: value}}; the keys that all sections have are the
    ones below. exe of a section is the path of a copy of prefork that is made
    for it.
    """

    def __init__(self, box, sections, *args, **options):
        self.box = box
        self.dir = box.make_dir('service')
        self.path = self.dir / 'profd.conf'
        self.exe = {}
        for name in sections:
            self.add_exe(name)
        self.configure(sections)
        self.profd = box.profd([], '--config', self.path, '--socket',
                               self.dir / 'socket', '--debug', *args,
                               **options)
        # Until then a signal would end the daemon.
        wait_for(lambda: control.listens(self.dir / 'socket') or
                 not self.profd.running(), 'it starts')

    def add_exe(self, name):
        exe = self.dir / 'bin' / name
        exe.parent.mkdir(exist_ok=True)
        shutil.copy(BUILD / 'targets/prefork', exe)
        self.exe[name] = exe

    def configure(self, sections):
        text = '[profiler]\nchunk_seconds = 1\n'
        for name, keys in sections.items():
            keys = {'exe': self.exe[name], 'profile_session_sample_rate': 1,
                    'autostart': 'yes', 'min_age_seconds': 0,
                    'release': f'{name}@1', **keys}
            text += f'[target "{name}"]\n'
            text += ''.join(f'{k} = {v}\n' for k, v in keys.items()
                            if v is not None)
        self.path.write_text(text)
        self.path.chmod(0o600)

    def reload(self, sections, said='the configuration has been reloaded'):
        """Reloads the configuration; returns when the daemon has logged this
        line."""
        self.configure(sections)
        n = self.profd.stderr.count(said)
        self.profd.signal(signal.SIGHUP)
        wait_for(lambda: self.profd.stderr.count(said) > n, said)

    def start(self, name, **options):
        """Starts a process that section name matches."""
        program = self.box.start([self.exe[name]], stdin=subprocess.PIPE,
                                 **options)
        program.wait_line('ready.*')
        return program

    def is_profiled(self, pid):
        tids = threads(pid)
        capture = self.profd.helpers()['capture']
        return bool(tids) and all(tracer(tid) in capture for tid in tids)

    def wait_profiled(self, *pids):
        wait_for(lambda: all(self.is_profiled(pid) for pid in pids),
                 f'{pids} are profiled')

    def wait_left(self, *pids):
        wait_for(lambda: not any(tracer(pid) for pid in pids),
                 f'{pids} are let go of')

    def wait_known(self, pid, n=1):
        """Waits until the daemon has found the process, profiled or not."""
        text = f'process {pid} matches [target '
        wait_for(lambda: self.profd.stderr.count(text) >= n, text)

    def stop(self):
        self.profd.signal(signal.SIGTERM)
        return self.profd.finish(timeout=PATIENCE_S)


def tell(program, line):
    program.process.stdin.write(line.encode() + b'\n')
    program.process.stdin.flush()


def fork(program):
    """Makes prefork fork one more worker; returns its pid."""
    n = program.stdout.count('worker')
    tell(program, 'fork')
    wait_for(lambda: program.stdout.count('worker') > n, 'a worker')
    return int(program.stdout.split('worker ')[-1])


def check_chunks(profd, release, least=1):
    """Checks that at least this many chunks have this release."""
    found = [e.chunk['release'] for e in profd.envelopes if e.chunk]
    check(found.count(release) >= least,
          f'{found.count(release)} chunks of {release}: {found}')
