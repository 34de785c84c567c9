#!/usr/bin/python3
"""sentry-profctl record: a profile by the running daemon, of a process that it
profiles for Sentry or not."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

import control
import harness
import proc
import stranger
from harness import check, wait_for
from test_broker import HERE, message_types, take_over
from test_control import configured, listening

RECORD, WATCH, RECORD_END = 13, 14, 15
GOES_ON, DONE, NO_PROCESS, LEFT_OUT = 0, 1, 2, 3


class Recording:
    """A connection that has requested a recording, with messages made by hand. lost: the count of
    the last message; dropped: chunks that began and were not completed."""

    def __init__(self, path, pid, kind=WATCH, version=6):
        self.control = control.dial(path)
        self.control.send(control.hello(version))
        control.answer(self.control)
        self.control.send(control.request(kind, pid))
        data, fds, _, _ = socket.recv_fds(self.control, 4096, 1)
        self.result = struct.unpack_from('=I', data, 12)[0]
        self.text = data[72:].rstrip(b'\0').decode()
        self.socket = socket.socket(fileno=fds[0]) if fds else None
        self.lost = self.dropped = 0
        if fds:
            self.socket.settimeout(harness.PATIENCE_S)

    def take(self):
        """Returns the bytes of the next chunk, or the number of its end."""
        chunk, size = b'', 1
        while len(chunk) < size:
            end, self.lost, size, at, piece = self.take_message()
            if at == 0:
                self.dropped += chunk != b''
                chunk = b''
            if end != GOES_ON:
                return end
            check(at == len(chunk) and piece, f'{at}, {len(chunk)} of {size}')
            chunk += piece
        check(len(chunk) == size, f'{len(chunk)} of {size}')
        return chunk

    def take_message(self):
        """Returns the header of one message, and its bytes; None: the daemon has closed."""
        data, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 1)
        check(len(data) <= 16000 and not fds, f'{len(data)} bytes, {fds}')
        return (*struct.unpack_from('=IIII', data), data[16:]) if data else None

    def next(self):
        """Returns the next chunk's payload, or the number of its end."""
        taken = self.take()
        return taken if isinstance(taken, int) else json.loads(taken)

    def finish(self):
        """Returns every chunk up to the end, and the end."""
        self.control.send(control.request(RECORD_END))
        control.answer(self.control)
        return self.rest()

    def rest(self):
        chunks = []
        while isinstance(chunk := self.next(), dict):
            chunks.append(chunk)
        return chunks, chunk

    def close(self):
        if self.socket:
            self.socket.close()
        self.control.close()


def wait_samples(ctl, pid, n):
    """Waits until this many more samples of a process were taken."""
    before = ctl.target(pid)['samples_taken']
    wait_for(lambda: ctl.target(pid)['samples_taken'] > before + n, 'samples')


def start_record(box, ctl, pid, out):
    return box.start([harness.BUILD / 'sentry-profctl', 'record', '-o', out,
                      '--socket', ctl.path, pid])


def functions(chunk):
    return {f.get('function') for f in chunk['profile']['frames']}


def test_a_thread_that_waits(box):
    """The waiting thread had its last sample before the recording began."""
    target = box.target('unw_o2', 'nanosleep')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    recording = Recording(ctl.path, target.pid, RECORD)
    profd.wait_looks(30)
    chunks, _ = recording.finish()
    samples = chunks[0]['profile']['samples']
    check(len(chunks) == 1 and
          {s.get('state') for s in samples} == {'waiting'} and
          'main' in functions(chunks[0]), f'{chunks}')
    profd.interrupt()


def test_it_covers_its_time(box):
    """capture announces records up to half a second later, at once only in the first 2 s of a
    target: a recording waits for none of these."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    time.sleep(2)

    def attempt():
        wrong = []
        for _ in range(5):
            begin = time.time()
            recording = Recording(ctl.path, target.pid, RECORD)
            time.sleep(0.3)
            end = time.time()
            chunks, _ = recording.finish()
            times = [s['timestamp'] for c in chunks for s in c['profile']['samples']]
            if not times or abs(min(times) - begin) > 0.1 or abs(max(times) - end) > 0.1:
                wrong.append(f'{begin} to {end}: {times}')
            recording.close()
        return wrong
    harness.in_turns(attempt, 3)
    profd.interrupt()


def test_one_that_is_stopped(box):
    """capture attaches to the stopped target for the recording, and Sentry
    gets no chunk."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    ctl.run('stop', target.pid)
    wait_for(lambda: not harness.tracer(target.pid), 'it is let go')
    wait_for(lambda: ctl.target(target.pid)['chunks_sent'] == 1, 'its chunk')
    recording = Recording(ctl.path, target.pid)
    check('leaf_spin' in functions(recording.next()), 'its stacks')
    found = ctl.target(target.pid)
    check(found['state'] == 'stopped' and found['profiler_id'] is None,
          f'{found}')
    # The target is then also profiled for Sentry: the recording goes on.
    ctl.run('start', target.pid)
    found = ctl.wait_state(target.pid, 'profiling')
    wait_for(lambda: ctl.target(target.pid)['profiler_id'], 'another run')
    wait_samples(ctl, target.pid, 100)
    check('leaf_spin' in functions(recording.next()), 'it goes on')
    ctl.run('stop', target.pid)
    wait_for(lambda: ctl.target(target.pid)['profiler_id'] is None, 'no run')
    check('leaf_spin' in functions(recording.next()), 'and on')
    check(recording.finish()[1] == DONE, 'its end')
    wait_for(lambda: not harness.tracer(target.pid), 'it is let go')
    profd.interrupt()
    ids = [c['profiler_id'] for c in profd.chunks]
    check(len(set(ids)) == 2, f'{ids}')


def test_one_that_is_no_target(box):
    """The process is a target during the recording, and not afterwards."""
    sleeper = box.target('unw_o2', 'nanosleep')
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [sleeper])
    profd.wait_attached()
    out = box.dir / 'out.folded'
    done = ctl.run('record', target.pid, '--duration', '1', '-o', out)
    # The key that decides about lines; sentry-profd has --symbols names here.
    lacks, line, rest = done.stderr.split('\n')
    check(re.fullmatch(f'.*process {target.pid}: no source lines and .*symbols = lines in .*', lacks)
          and line.startswith('to see it: flamegraph.pl ') and not rest, done.stderr)
    check(any('main;' in line and 'spin' in line
              for line in out.read_text().splitlines()), out.read_text())
    table = ctl.run('record', target.pid, '-d', '0.5', '--to', 'summary')
    check('spin' in table.stdout, table.stdout)
    wait_for(lambda: ctl.target(target.pid) is None, 'it is none any more')
    wait_for(lambda: not harness.tracer(target.pid), 'it is let go')
    profd.interrupt()
    check({c['profiler_id'] for c in profd.chunks} ==
          {profd.chunks[0]['profiler_id']}, 'the sleeper alone')


def test_interrupted(box):
    """^C ends the recording, and the file is written."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    out = box.dir / 'out.folded'
    recorder = start_record(box, ctl, target.pid, out)
    wait_samples(ctl, target.pid, 100)
    recorder.signal(signal.SIGINT)
    check(recorder.wait() == 0, recorder.stderr)
    check('spin' in out.read_text(), out.read_text())
    profd.interrupt()


def test_ends(box):
    """The end of the process, of unwind, and of the daemon."""
    target = box.target('unw_o2', 'spin')
    sleeper = box.target('unw_o2', 'nanosleep')
    profd, ctl = listening(box, [target, sleeper])
    profd.wait_attached().wait_looks()
    recording = Recording(ctl.path, target.pid)
    recording.next()
    for pid in profd.helpers()['unwind']:
        os.kill(pid, signal.SIGKILL)
    # Earlier chunks come first.
    wait_for(lambda: 'leaf_spin' in functions(recording.next()) and
             recording.lost == 1, 'one of the next unwind process')
    target.end()
    check(recording.rest()[1] == NO_PROCESS, 'its process has ended')
    # The peer had asked for the end before it could know.
    recording.control.send(control.request(RECORD_END))
    check(control.answer(recording.control)[0] == 0, 'the answer')
    out = box.dir / 'out.folded'
    recorder = start_record(box, ctl, sleeper.pid, out)
    wait_samples(ctl, sleeper.pid, 50)
    profd.signal(signal.SIGINT)
    check(recorder.wait() == 0, recorder.stderr)
    check('sentry-profd has ended' in recorder.stderr and
          'main' in out.read_text(), recorder.stderr)
    profd.finish()


def private_record(box, *args, **options):
    """Starts record where no daemon runs, as a user without rights if possible. Returns it, and the
    directory in which its daemon has its socket."""
    copies = stranger.copy(box, ('sentry-profctl', *stranger.EXECUTABLES))
    runtime = stranger.make_dir(box, 'runtime')
    env = harness.environment(XDG_RUNTIME_DIR=str(runtime),
                              SENTRY_PROFD_SOCKET=str(box.dir / 'none.sock'))
    recorder = box.start([copies / 'sentry-profctl', 'record', *args], env=env,
                         **stranger.options(), **options)
    return recorder, runtime


def test_without_a_daemon(box):
    """record starts a sentry-profd of the user's own, and ends it: after the duration, at ^C, and
    with the process."""
    if os.geteuid() == 0:
        stranger.need_ptrace()
    target = stranger.target(box, 'shares')
    for end in 'duration', signal.SIGINT, 'process':
        words = ('--duration', '1') if end == 'duration' else ()
        recorder, runtime = private_record(box, target.pid, '--to', 'summary', *words)
        wait_for(lambda: harness.tracer(target.pid) or not recorder.running(), 'it is traced')
        proc.wait_work(target.pid, 0.3)
        if end == signal.SIGINT:
            recorder.signal(end)
        elif end == 'process':
            target.end()
        check(recorder.wait() == 0, recorder.stderr)
        check('busy_seventy' in recorder.stdout, f'{recorder.stdout}{recorder.stderr}')
        check(not list(runtime.iterdir()), f'{list(runtime.iterdir())}')
        if end != 'process':
            check(not harness.tracer(target.pid), 'it is let go')


def test_without_a_daemon_and_process(box):
    """The private daemon's own reason is shown; a name needs a running daemon."""
    for word, why in (2**22 - 1, 'exited at its start'), ('web', 'does not run here'):
        recorder, runtime = private_record(box, word, '--to', 'summary')
        check(recorder.wait() == 1 and why in recorder.stderr, recorder.stderr)
        check(not list(runtime.iterdir()), f'{list(runtime.iterdir())}')


def test_strangers(box):
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [target])
    profd.wait_attached()
    if os.geteuid() == 0:
        refused = ctl.run('record', target.pid, '-d', '1', '--to', 'folded',
                          uid=stranger.UID, status=1)
        check('not permitted' in refused.stderr, refused.stderr)
    for words, why in (
            (['record', target.pid], 'no output'),
            (['record', target.pid, '-o', 'x.y'], 'which format'),
            (['record', target.pid, '--to', 'word'], 'not a format'),
            (['record', target.pid, '-d', '-1', '--to', 'json'], 'seconds'),
            (['record', '--to', 'json'], 'takes a pid'),
            (['record', '', '--to', 'json'], 'neither a pid')):
        said = ctl.run(*words, status=2).stderr
        check(why in said, said)
    for words, why in ((['nobody'], 'no process belongs'),
                       ([profd.pid], 'itself'), ([2**22 - 1], 'no such')):
        said = ctl.run('record', *words, '-d', '1', '--to', 'json',
                       status=1).stderr
        check(why in said, said)
    profd.interrupt()
    gone = ctl.run('record', '--socket', ctl.path, target.pid, '-d', '1', '--to', 'json', status=1)
    check('does not run' in gone.stderr, gone.stderr)


def test_a_set_user_id_program(box):
    """What was the user's process when the recording began is root's later: the user
    gets nothing of that program."""
    stranger.need_root()
    suid = stranger.copy(box, ['targets/shares']) / 'shares'
    suid.chmod(0o4755)
    app = box.start(['sh', '-c', 'echo ready; read x; exec "$0"', suid],
                    stdin=subprocess.PIPE, **stranger.options())
    app.wait_line('ready')
    profd, ctl, _ = configured(box, '[sentry]\nuser_attach = send\n')
    ctl.run('attach', app.pid, uid=stranger.UID)
    recording = stranger_recording(ctl.path, app.pid)
    check(isinstance(recording.next(), dict), 'a chunk of the shell')
    app.process.stdin.write(b'\n')
    app.process.stdin.flush()
    app.wait_line('ready.*\\d+')
    chunks, end = recording.rest()
    names = {f.get('function') for c in chunks for f in c['profile']['frames']}
    check(end == LEFT_OUT and not {n for n in names if n and 'busy' in n},
          f'{end}: {names}')
    wait_for(lambda: all(not harness.tracer(t) for t in harness.threads(app.pid)),
             'it is let go')
    check(os.stat(f'/proc/{app.pid}/stat').st_uid == 0, 'it is not set-user-ID')
    check(ctl.target(app.pid) is None, 'it is no target')
    profd.interrupt()


def test_recorded_and_not_sent(box):
    """A process that is only recorded is not sent, whatever is asked for it."""
    target = box.target('unw_o2', 'spin')
    profd, ctl = listening(box, [box.target('unw_o2', 'nanosleep')])
    profd.wait_attached()
    recording = Recording(ctl.path, target.pid)
    check(isinstance(recording.next(), dict), 'a chunk of it')
    check('no target' in ctl.run('start', target.pid, status=1).stderr, 'start')
    check(isinstance(recording.next(), dict) and ctl.target(target.pid)['state'] == 'stopped',
          'it is recorded only')
    check(recording.finish()[1] == DONE, 'its end')
    profd.interrupt()
    check(len({c['profiler_id'] for c in profd.chunks}) == 1, 'the sleeper alone')


def with_hostile_unwind(box, attack):
    """Returns a daemon whose unwind process makes this attack of hostile.py, its Control, and the
    directory of the executables."""
    directory = take_over(box, 'unwind', (HERE / 'hostile.py').read_text())
    (directory / 'types').write_text('\n'.join(message_types()))
    (directory / 'attack').write_text(attack)
    path = box.make_dir('etc') / 'profd.conf'
    path.write_text('[profiler]\nleak_check = attach\n')
    profd, ctl = listening(box, [], '--config', path, '--shutdown-timeout', '2',
                           exe=directory / 'sentry-profd')
    return profd, ctl, directory


def test_unwind_sends_what_is_recorded(box):
    """An unwind process that was taken over sends a chunk of a process that is only
    recorded: Sentry does not get it."""
    target = box.target('shares')
    profd, ctl, _ = with_hostile_unwind(box, 'chunk')
    recording = Recording(ctl.path, target.pid)
    wait_for(lambda: 'sends a chunk of a process that is only recorded' in profd.stderr,
             'the unwind process to be ended')
    recording.close()
    profd.signal(signal.SIGINT)
    profd.wait()
    check(profd.stats['chunks']['made'] == 0, f'{profd.stats["chunks"]}')


def test_a_recording_that_ends_after_its_target(box):
    """unwind reports the end of the recording when the broker has freed the target: the process
    lives on, and so does the recording, in the next run."""
    target = box.target('shares')
    profd, ctl, directory = with_hostile_unwind(box, 'late end')
    recording = Recording(ctl.path, target.pid)
    wait_for((directory / 'sent').exists, 'the recording to be opened again')
    check(recording.finish() == ([], DONE), 'its end')
    recording.close()
    check('is replaced' not in profd.stderr, profd.stderr)
    profd.signal(signal.SIGINT)
    profd.wait()


def stranger_recording(path, pid):
    """A recording that another user has requested: SO_PEERCRED is that of
    connect(2)."""
    os.setegid(stranger.UID)
    os.seteuid(stranger.UID)
    try:
        return Recording(path, pid)
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_a_file_that_cannot_be_written(box):
    """That is said before the recording, and not after it."""
    target = box.target('shares')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    directory = box.make_dir('out')
    for out, why in ((directory / 'absent/p.html', 'No such file or directory'),
                     (directory, 'Is a directory')):
        # Without --duration: it would record until the end of the test.
        recorder = box.start([harness.BUILD / 'sentry-profctl', 'record', '--to', 'html', '-o', out,
                              '--socket', ctl.path, target.pid])
        check(recorder.wait() == 1, recorder.stderr)
        check(f'cannot write {out}: {why}' in recorder.stderr, recorder.stderr)
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
