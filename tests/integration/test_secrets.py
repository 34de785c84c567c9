#!/usr/bin/python3
"""The DSN's key is in nothing that sentry-profd writes, starts or leaves
behind."""

import json
import os
import pathlib
import resource
import signal

import harness
import stranger
from formats import page_data
from harness import Skip, check, wait_for
from test_convert import convert
from test_delivery_server import KEY
from test_send import made_chunk, send


def everybody(profd):
    return {pid: kind for kind, pids in profd.helpers().items()
            for pid in pids}


def test_children_are_not_given_it(box):
    """The broker's environment is that of its start, and ship gets the key by
    its socket. No other child gets it."""
    server = box.server(tls=False)
    env = harness.environment(SENTRY_DSN=server.dsn)
    profd = box.profd([box.target('shares')], '--chunk-seconds', '1', '--debug',
                      env=env)
    wait_for(lambda: server.envelopes, 'a chunk')
    children = everybody(profd)
    check(sorted(children.values()) == ['capture', 'ship', 'unwind'],
          f'{children}')
    for pid, kind in children.items():
        for name in ('cmdline', 'environ'):
            if os.geteuid() == 0:
                text = pathlib.Path(f'/proc/{pid}/{name}').read_text()
                check(KEY not in text, f'{name} of {kind}: {text}')
    profd.interrupt()
    check(KEY in server.requests[0]['headers']['x-sentry-auth'], 'the key')
    written = [profd.out_path, profd.err_path, profd.stats_path,
               *profd.output.iterdir()]
    check(len(written) > 3, 'files')
    for path in written:
        check(KEY.encode() not in path.read_bytes(), f'it is in {path}')


def test_errors_do_not_show_it(box):
    """Error messages name the option or the file, and quote no part of the
    key."""
    for dsn in (f'https://{KEY}@/42', f'https://{KEY}:{KEY} @host/1',
                f'{KEY}@host/1', f'https://{KEY}\n@host/1',
                f'https://{KEY}@no.such.host.invalid/1',
                f'https://{KEY}@127.0.0.1:1/1'):
        profd = box.profd([box.target('shares')], '--dsn', dsn, '--debug',
                          '--duration', '0.2', '--shutdown-timeout', '0.1',
                          output=None)
        check(profd.wait() in (2, harness.ALL_LOST), f'{profd.process.returncode}')
        check(KEY[:8] not in profd.stderr + profd.stdout, profd.stderr)


WORD = 'AWordOfAnArgument'


# A shell that is busy for a moment.
BUSY = 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'


def with_argument(box, *args, **options):
    """Profiles a command with an argument."""
    profd = box.profd([], *args, '--', 'sh', '-c', BUSY, WORD, **options)
    check(profd.wait() == 0, profd.report())


def test_arguments_are_in_pages_only(box):
    """A page of a run by hand shows how processes were started. Their arguments may be
    secrets, so nothing else has them: no chunk that is sent, and no other file."""
    server = box.server(tls=False)
    page = box.make_dir('page') / 'x.html'
    with_argument(box, '--dsn', server.dsn, output=page)
    check(WORD.encode() in page_data(page), 'the page lacks it')
    check(server.envelopes, 'no chunk')
    check(not any(WORD.encode() in e.data for e in server.envelopes), 'it was sent')
    for output in ('files', 'x.json', 'x.speedscope.json', 'x.svg'):
        path = box.make_dir('other') / output
        with_argument(box, output=path)
        for file in [path] if path.is_file() else path.iterdir():
            check(WORD.encode() not in file.read_bytes(), f'it is in {file}')
    check(WORD not in convert('--to', 'json', page)[0].decode(), 'it is in a file made of the page')


def test_arguments_are_not_sent(box):
    """As of a run by hand that could not make its page: its files have command lines."""
    server = box.server(tls=False)
    path = box.make_dir('in') / 'x.json'
    path.write_text(json.dumps({**made_chunk(1), 'command_line': f'app {WORD}'}))
    send(server, path)
    envelope, = server.envelopes
    check(WORD.encode() not in envelope.data, 'it was sent')
    check(envelope.chunk['profile'] == made_chunk(1)['profile'], f'{envelope.chunk}')


def cores(directory):
    return sorted(p.name for p in directory.glob('*core*'))


def need_cores(box, directory):
    """Skips the test unless a process that is killed like this would leave a
    core here."""
    pattern = pathlib.Path('/proc/sys/kernel/core_pattern').read_text().strip()
    if not pattern.startswith('core') or '/' in pattern:
        raise Skip(f'cores go elsewhere: {pattern}')
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    program = box.start(['sleep', '1000'], cwd=directory)
    wait_for(lambda: harness.exe_name(program.pid) == 'sleep', 'it runs')
    program.signal(signal.SIGSEGV)
    program.wait()
    if not cores(directory):
        raise Skip('no cores are written here')
    for name in cores(directory):
        (directory / name).unlink()


def test_no_cores(box):
    directory = box.make_dir('cores')
    # Any user may write a core there.
    directory.chmod(0o777)
    need_cores(box, directory)
    server = box.server(tls=False)
    profd = box.profd([box.target('shares')], '--chunk-seconds', '1', '--dsn',
                      server.dsn, output=None, cwd=directory)
    wait_for(lambda: server.envelopes, 'a chunk')
    ship, = profd.helpers()['ship']
    os.kill(ship, signal.SIGSEGV)
    wait_for(lambda: profd.helpers()['ship'] not in ([], [ship]),
             'another ship')
    check(cores(directory) == [], f'ship left {cores(directory)}')
    profd.signal(signal.SIGSEGV)
    check(profd.wait() == -signal.SIGSEGV, 'the broker goes on')
    check(cores(directory) == [], f'the broker left {cores(directory)}')


def written_memory(pid):
    """Returns what the process has in the memory that it may write."""
    parts = []
    with open(f'/proc/{pid}/mem', 'rb', 0) as memory:
        for line in pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines():
            if ' rw' in line:
                first, end = (int(n, 16) for n in line.split()[0].split('-'))
                memory.seek(first)
                parts.append(memory.read(end - first))
    return b''.join(parts)


def test_the_broker_forgets_the_key_of_a_certificate(box):
    """It reads the file of the key to check it, and passes a descriptor to ship."""
    stranger.need_root()
    directory, word = box.make_dir('keys'), 'AWordOfTheKey'
    files = {'certificate': 'MAYCAQUCAQc=\n', 'private key': (4 * word + '\n') * 3000}
    for name, text in files.items():
        label = name.upper()
        (directory / name).write_text(
            f'-----BEGIN {label}-----\n{text}-----END {label}-----\n')
    profd = box.profd([box.target('shares')], '--client-cert', directory / 'certificate',
                      '--client-key', directory / 'private key', '--dsn',
                      f'https://{KEY}@127.0.0.1:1/1', output=None).wait_attached()
    memory = written_memory(profd.pid)
    check(KEY.encode() in memory, 'the key of the DSN is there')
    check(word.encode() not in memory, f'{memory.count(word.encode())} parts')


def test_an_ordinary_user_s(box):
    """Works for an ordinary user, too: his other processes cannot read the key
    in it."""
    stranger.need_ptrace()
    server = box.server(tls=False)
    profd = stranger.profd(box, [stranger.target(box, 'shares')],
                           '--chunk-seconds', '1', '--dsn', server.dsn)
    wait_for(lambda: server.envelopes, 'a chunk')
    ship, = profd.helpers()['ship']
    for pid in (profd.pid, ship):
        # proc(5): the file belongs to root if the process is not dumpable.
        owner = os.stat(f'/proc/{pid}/environ').st_uid
        check(owner == 0, f'{owner} may read what {pid} has in memory')
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
