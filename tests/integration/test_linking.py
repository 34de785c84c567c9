#!/usr/bin/python3
"""profile_lifecycle = trace with programs that use libsentry_profd: when they
are profiled, and whether their transactions lead to the profile."""

import json
import re
import shutil
import subprocess

import control
import harness
from harness import BUILD, ROOT, Skip, check, threads, tracer, wait_for

HERE = ROOT / 'tests/integration/linking'
EXAMPLES = ROOT / 'docs/examples'
# The test sets how long a request takes; its chunks are short.
CHUNK_SECONDS = 1


# Calls the function that each line names.
STARTS = '''
import ctypes, sys
library = ctypes.CDLL(sys.argv[2])
library.sentry_profd_connect(None)
library.sentry_profd_wait(60000)
print('ready', flush=True)
for line in sys.stdin:
    getattr(library, 'sentry_profd_' + line.strip())()
'''

# Loads the library again and again, as a program that unloads a plugin.
RELOADS = '''
import _ctypes, ctypes, sys
for _ in range(10):
    library = ctypes.CDLL(sys.argv[2])
    result = library.sentry_profd_connect(None) or library.sentry_profd_wait(60000)
    _ctypes.dlclose(library._handle)
    if result != 0:
        break
print('ready', flush=True)
print(result, flush=True)
sys.stdin.read()
'''


def is_let_go(pid):
    return all(tracer(t) == 0 for t in threads(pid))


class Play:
    """A daemon, and a program that announces its root spans."""

    def __init__(self, box, lifecycle='trace', thread_ids='tid', rate='1.0'):
        self.box = box
        self.server = box.server()
        self.path = box.make_dir('run') / 'profd.sock'
        self.directory = box.make_dir('profd')
        self.config = self.directory / 'profd.conf'
        self.config.write_text(
            f'[sentry]\ndsn = {self.server.dsn}\n'
            f'[profiler]\nchunk_seconds = {CHUNK_SECONDS}\ncpu_budget_percent = 0\n'
            f'[target "app"]\ncmdline = *{self.directory}*\n'
            f'profile_session_sample_rate = {rate}\n'
            f'profile_lifecycle = {lifecycle}\nmin_age_seconds = 0\n'
            f'thread_id_format = {thread_ids}\n')
        self.config.chmod(0o600)
        self.control = control.Control(box, self.path)
        self.n = 0

    def start_daemon(self, *args):
        stats = self.directory / f'stats-{self.n}.json'
        self.n += 1
        self.profd = self.box.start(
            [BUILD / 'sentry-profd', '--config', self.config, '--socket',
             self.path, '--stats', stats, '--spool', 'none', '--quiet',
             '--shutdown-timeout', harness.PATIENCE_S, '--debug', *args],
            cls=harness.Profd, pids=[], stats_path=stats,
            output=self.directory, env=self.server.env)
        wait_for(lambda: control.listens(self.path) or
                 not self.profd.running(), 'a socket')
        check(self.profd.running(), self.profd.stderr)

    def start_app(self, argv, **env):
        self.app = self.box.start(
            argv, stdin=subprocess.PIPE,
            env=harness.environment(SENTRY_PROFD_SOCKET=str(self.path), **env))
        self.app.wait_line('ready.*')
        self.pid = self.app.pid

    def state(self):
        return (self.control.target(self.pid) or {}).get('state')

    def wait_state(self, state):
        wait_for(lambda: self.state() == state, state)

    def tell(self, line):
        self.app.process.stdin.write(line.encode() + b'\n')
        self.app.process.stdin.flush()

    def chunks_of(self, profiler_id):
        return [c for c in self.server.chunks
                if c['profiler_id'] == profiler_id]


def c_app(play, *wrapper):
    """Builds the example as its reader would."""
    exe = play.directory / 'server'
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'jansson'],
                           check=True, capture_output=True, text=True).stdout
    subprocess.run(
        ['gcc', '-Wall', '-Wextra', '-Werror', '-o', exe,
         EXAMPLES / 'sentry_native.c', f'-I{HERE}', f'-I{ROOT}/lib/client',
         BUILD / 'libsentry_profd.a', *flags.split()], check=True)
    play.start_app([*wrapper, exe])

    def transactions():
        # The text after the last newline is an incomplete line.
        return [json.loads(line) for line in play.app.stdout.split('\n')[:-1]
                if line.startswith('{')]
    return transactions


def python_app(play):
    if not shutil.which('/usr/bin/python3') or subprocess.run(
            ['/usr/bin/python3', '-c', 'import sentry_sdk'],
            capture_output=True, check=False).returncode:
        raise Skip('no sentry_sdk')
    # The server is strict about sentry-profd's requests only; it records those
    # of other clients.
    sdk = play.box.server(tls=False)
    # A fresh Debian has no /etc/hosts; then only libcurl resolves localhost.
    dsn = sdk.dsn.replace('localhost', '127.0.0.1')
    mine = play.directory / 'app.py'
    mine.write_bytes((HERE / 'app.py').read_bytes())
    play.start_app(['/usr/bin/python3', mine, BUILD / 'libsentry_profd.so',
                    dsn], PYTHONPATH=str(EXAMPLES))

    def transactions():
        return [json.loads(payload) for e in sdk.all_envelopes()
                for item, payload in e.items
                if item['type'] == 'transaction']
    return transactions


def check_linked(play, transaction):
    """Checks that the transaction leads to chunks of its profiler that have
    its thread."""
    profiler_id = transaction['contexts']['profile']['profiler_id']
    data = transaction['contexts']['trace']['data']
    wait_for(lambda: play.chunks_of(profiler_id), 'its chunk')
    for chunk in play.chunks_of(profiler_id):
        profile = chunk['profile']
        check(data['thread.id'] in profile['thread_metadata'],
              f'{data} {profile["thread_metadata"]}')
        check(data['thread.name'] ==
              profile['thread_metadata'][data['thread.id']]['name'], f'{data}')
        check(any(s['thread_id'] == data['thread.id']
                  for s in profile['samples']), 'no sample of its thread')
    for span in transaction['spans']:
        check(span['data']['thread.id'] == data['thread.id'], f'{span}')
    return profiler_id


def run_requests(box, start_app, thread_ids):
    play = Play(box, thread_ids=thread_ids)
    play.start_daemon()
    transactions = start_app(play)
    play.wait_state('stopped')
    check(is_let_go(play.pid), 'it is traced, and no span is open')

    # A root span that is not sampled starts no profiler.
    play.tell('/alive')
    for _ in range(3):
        check(play.state() == 'stopped', 'a root span that is not sampled')
    play.tell('')

    play.tell('/long')
    wait_for(lambda: not is_let_go(play.pid), 'it is profiled')
    check(play.state() == 'profiling', 'and the status says so')
    wait_for(lambda: len(play.server.chunks) >= 3, 'chunks')
    check(not is_let_go(play.pid), 'as long as the span is open')
    play.tell('')
    wait_for(lambda: len(transactions()) == 1, 'its transaction')
    first = check_linked(play, transactions()[0])
    wait_for(lambda: is_let_go(play.pid), 'it is let go after the last one')
    play.wait_state('stopped')
    check({c['profiler_id'] for c in play.server.chunks} == {first},
          'chunks of one run')

    # The span ends before the daemon can have answered.
    play.tell('/short\n')
    wait_for(lambda: len(transactions()) == 2, 'the second one')
    second = check_linked(play, transactions()[1])
    check(second != first, 'a profiler_id of its own')
    play.wait_state('stopped')
    wait_for(lambda: is_let_go(play.pid), 'it is let go again')

    # The end of a program also ends its open spans.
    play.tell('/never')
    wait_for(lambda: not is_let_go(play.pid), 'it is profiled')
    play.app.signal(9)
    play.app.wait()
    wait_for(lambda: play.state() is None, 'it is none any more')
    play.profd.interrupt()
    play.server.check_requests()
    check(len({c['profiler_id'] for c in play.server.chunks}) in (2, 3),
          'a profiler_id for each run')


def test_c(box):
    run_requests(box, c_app, 'tid')


def test_python(box):
    run_requests(box, python_app, 'pthread')


def test_a_daemon_that_comes_and_goes(box):
    """The library finds the daemon, and later the next one, by itself."""
    play = Play(box)
    transactions = c_app(play)

    def ended(n):
        wait_for(lambda: len(transactions()) > n, 'its transaction')
        return transactions()[n]

    def profiler_id(transaction):
        return transaction['contexts'].get('profile', {}).get('profiler_id')

    def wait_linked(gone=None):
        """Sends requests until one is linked to a chunk that arrived. Without
        messages the library takes some seconds to notice that a daemon was
        killed.
        """
        def linked():
            n = len(transactions())
            play.tell('/request\n')
            return profiler_id(ended(n)) not in (None, gone)
        wait_for(linked, 'a transaction that is linked')
        return check_linked(play, transactions()[-1])

    play.tell('/nobody is there\n')
    check(profiler_id(ended(0)) is None, 'linked to nothing')
    play.start_daemon()
    first = wait_linked()
    n = len(transactions())
    play.tell('/open')
    play.profd.signal(9)
    play.profd.wait()
    wait_for(lambda: is_let_go(play.pid), 'it is let go')
    play.start_daemon()
    play.tell('')
    # Its chunks were lost with the killed process.
    check(ended(n)['transaction'] == '/open', 'the one that was open')
    check(wait_linked(profiler_id(ended(n))) != first,
          'another daemon is another profiler')
    play.profd.interrupt()


def test_in_a_container(box):
    """In a container the program's pids differ from the daemon's."""
    play = Play(box)
    play.start_daemon()
    # The child is the first process of the namespace, and ends with its
    # parent.
    transactions = c_app(play, 'unshare', '--pid', '--fork', '--kill-child')
    play.pid, = harness.children(play.app.pid)
    play.wait_state('stopped')
    play.tell('/here\n')
    wait_for(lambda: len(transactions()) == 1, 'its transaction')
    check_linked(play, transactions()[0])
    data = transactions()[0]['contexts']['trace']['data']
    check(data['thread.id'] == str(play.pid), f'{data}, not {play.pid}')
    play.profd.interrupt()


def test_threads_by_their_pointers(box):
    play = Play(box, lifecycle='manual\nautostart = yes', thread_ids='pthread')
    target = play.directory / 'pthreads'
    shutil.copy(BUILD / 'targets/pthreads', target)
    play.start_app([target])
    play.start_daemon()
    wait_for(lambda: not is_let_go(play.pid), 'it is profiled')
    play.profd.pids = [play.pid]
    play.profd.wait_looks()
    # Usually in one chunk, with one stack.
    for n in range(1, 6):
        play.tell('')
        wait_for(lambda n=n: play.app.stdout.count('joined') >= n, 'one more')
    play.profd.interrupt()
    said = [line.split() for line in play.app.stdout.splitlines()
            if line.startswith('thread')]
    names = {self: name for _, name, self in said}
    check(len(names) < len(said), f'no stack is used again: {said}')
    found = {}
    for envelope in play.server.envelopes:
        payload = next(p for item, p in envelope.items
                       if item['type'] == 'profile_chunk').decode()
        metadata = envelope.chunk['profile']['thread_metadata']
        for self, thread in metadata.items():
            # A thread that was first sampled before it had its name has the
            # name later. Threads with the same name have their id appended.
            check(self in names and
                  thread['name'].removesuffix(f' ({self})') in
                  (names[self], 'pthreads'), f'{metadata} {names}')
            check(payload.count(f'"{self}":') == 1, 'twice in its chunk')
            found[self] = names[self]
        check({s['thread_id'] for s in envelope.chunk['profile']['samples']}
              <= set(metadata), 'a sample of another thread')
    check(set(found.values()) >= {'main', 'asleep', 'busy'}, f'{found}')


def test_a_program_that_starts_its_profiler(box):
    play = Play(box, lifecycle='manual')
    play.start_daemon()
    play.start_app(['/usr/bin/python3', '-c', STARTS, play.directory,
                    BUILD / 'libsentry_profd.so'])
    play.wait_state('stopped')
    check(is_let_go(play.pid), 'it is traced')
    play.tell('start_profiler')
    wait_for(lambda: not is_let_go(play.pid), 'it is profiled')
    wait_for(lambda: play.server.chunks, 'a chunk')
    play.tell('stop_profiler')
    wait_for(lambda: is_let_go(play.pid), 'it is let go')
    play.wait_state('stopped')
    play.tell('stop_profiler')
    wait_for(lambda: 'stop has no effect' in play.profd.stderr,
             'it is said at debug level')
    play.tell('start_profiler')
    wait_for(lambda: not is_let_go(play.pid), 'it is profiled again')
    wait_for(lambda: len({c['profiler_id'] for c in play.server.chunks}) == 2,
             'as another profiler')
    play.profd.interrupt()


def test_a_program_that_loads_the_library_several_times(box):
    """It has one connection all the time: the daemon refuses the ninth of a process."""
    play = Play(box)
    play.start_daemon()
    play.start_app(['/usr/bin/python3', '-c', RELOADS, play.directory,
                    BUILD / 'libsentry_profd.so'])
    result = play.app.wait_line(r'-?\d+').group()
    check(result == '0', f'a connection fails: {result}')
    play.profd.interrupt()


def said_of_calls(play, calls):
    """Makes each call by the program itself, and then by sentry-profctl.
    Returns the daemon's log lines about the program, of which there are no
    others."""
    play.start_app(['/usr/bin/python3', '-c', STARTS, play.directory,
                    BUILD / 'libsentry_profd.so'])
    wait_for(play.state, 'it is known')
    before = len(play.profd.stderr)

    def said():
        return re.findall(rf'^sentry-profd: (.*): process {play.pid}: (.*)$',
                          play.profd.stderr[before:], re.M)
    for n, (call, line, status) in enumerate(calls):
        play.tell(f'{call}_profiler')
        wait_for(lambda: len(said()) == 2 * n + 1, f'{call}: a line')
        play.control.run(call, play.pid, status=status)
        wait_for(lambda: len(said()) == 2 * n + 2, f'{call}: a line')
        check(said()[-2:] == [('debug', line)] * 2, f'{said()}')


def test_calls_without_effect(box):
    """Calls without an effect, as the specification lists them, are logged at
    debug level."""
    play = Play(box, lifecycle='trace')
    play.start_daemon()
    said_of_calls(play, [
        ('start', 'start has no effect: profile_lifecycle is trace, the '
                  'profiler starts with the first sampled root span', 1),
        ('stop', 'stop has no effect: profile_lifecycle is trace, the profiler '
                 'stops after the last sampled root span', 1)])
    play.profd.interrupt()
    play = Play(box, lifecycle='manual', rate='0.0')
    play.start_daemon()
    said_of_calls(play, [
        ('start', 'the profiler does not start: the session is not sampled '
                  '(profile_session_sample_rate)', 1),
        ('stop', 'stop has no effect: the profiler is not running', 0)])
    play.profd.interrupt()
    play = Play(box, lifecycle='manual\nautostart = yes')
    play.start_daemon()
    said_of_calls(play, [
        ('start', 'start has no effect: the profiler is already running', 0)])
    play.profd.interrupt()


def test_a_session_that_is_not_sampled(box):
    play = Play(box, rate='0.0')
    play.start_daemon()
    transactions = c_app(play)
    play.wait_state('unsampled')
    play.tell('/long')
    for _ in range(3):
        check(play.state() == 'unsampled', 'it started')
    check(is_let_go(play.pid), 'it is traced')
    play.tell('')
    wait_for(lambda: len(transactions()) == 1, 'its transaction')
    check('profile' not in transactions()[0]['contexts'], 'it is linked')
    check('profile_session_sample_rate excludes it' in play.profd.stderr, play.profd.stderr)
    play.profd.interrupt()
    check(play.server.chunks == [], 'a chunk')


if __name__ == '__main__':
    harness.main(globals())
