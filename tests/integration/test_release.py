#!/usr/bin/python3
"""When detach and sentry_profd_release() return, every thread of the process can be
traced by another process; a released process is profiled again when its time is
over and no other process traces it."""

import os
import signal
import socket
import struct
import subprocess
import threading

import control
import harness
import stranger
from harness import BUILD, ROOT, check, wait_for
from test_control import configured, listening, section
from test_let_go import read_all, start_writer, until_in_a_rest
from test_linking import HERE, Play
from test_record import LEFT_OUT, Recording, wait_samples

harness.filters_kill()

# Numbers of lib/client/protocol.h.
RELEASE, OK, BAD_VERSION, TIMED_OUT = 19, 0, 9, 12


def attach_all(box, pid):
    """Attaches to each thread of a process at once, as gcore does, and keeps them.
    Returns the tracer."""
    tracer = box.start([BUILD / 'targets/attacher', pid])
    wait_for(lambda: 'refused' in tracer.stdout, 'its attempt')
    check(tracer.stdout.startswith(
        f'attached {len(harness.threads(pid))} refused 0\n'), tracer.stdout)
    return tracer


def are_free(pid):
    return not any(harness.tracer(t) for t in harness.threads(pid))


def wait_profiled(profd, ctl, pid):
    """Waits until capture traces all threads."""
    def is_attached():
        return all(harness.tracer(t) in profd.helpers()['capture']
                   for t in harness.threads(pid))
    wait_for(is_attached, 'it is profiled')
    return ctl.wait_state(pid, 'profiling')


def crowd(box):
    target = box.target('crowd')
    check(len(harness.threads(target.pid)) == 50, 'its threads')
    return target


def test_attach_right_after_detach(box):
    target, other = crowd(box), box.napper()
    profd, ctl = listening(box, [target, other])
    for n in range(6):
        wait_profiled(profd, ctl, target.pid)
        if n % 2 == 0:
            profd.wait_looks(20)
        said = ctl.run('detach', target.pid).stdout
        tracer = attach_all(box, target.pid)
        check(said == f'process {target.pid}: detached\n', said)
        check(ctl.target(target.pid)['last_error'] == 'detached', 'its status')
        # A tracer that does not belong to sentry-profd is named, not waited for.
        check('left out' in ctl.run('detach', target.pid).stdout, 'a no-op')
        tracer.end()
        ctl.run('attach', target.pid)
    wait_for(lambda: harness.tracer(other.pid), 'the other is profiled')
    profd.wait_attached().interrupt()
    check(target.running(), target.report())


def test_for_some_time(box):
    """The other tracer stays longer; then a new run begins."""
    target = crowd(box)
    profd, ctl = listening(box, [target])
    first = wait_profiled(profd, ctl, target.pid)['profiler_id']
    profd.wait_looks(20)
    ctl.run('detach', '--for', 4, target.pid)
    tracer = attach_all(box, target.pid)
    wait_for(lambda: ctl.target(target.pid)['last_error'] ==
             'released until no other process traces it', 'its time is over')
    found = ctl.target(target.pid)
    check(found['state'] == 'left_out' and found['profiler_id'] is None, f'{found}')
    tracer.end()
    second = wait_profiled(profd, ctl, target.pid)['profiler_id']
    check(second not in (first, None), f'{first} {second}')
    profd.wait_looks(20)
    profd.interrupt()
    check([c['profiler_id'] for c in profd.chunks] == [first, second], 'a chunk of each')


def test_a_tracer_of_one_thread(box):
    target = crowd(box)
    profd, ctl = listening(box, [target])
    wait_profiled(profd, ctl, target.pid)
    ctl.run('detach', '--for', 1, target.pid)
    tid = harness.threads(target.pid)[-1]
    tracer = box.target('tracer', tid)
    wait_for(lambda: 'until' in ctl.target(target.pid)['last_error'],
             'its time is over')
    check({harness.tracer(t) for t in harness.threads(target.pid) if t != tid} == {0},
          'its other threads are left alone')
    tracer.end()
    wait_profiled(profd, ctl, target.pid)
    profd.interrupt()


def test_attach_ends_a_release(box):
    target = box.napper()
    profd, ctl = listening(box, [target])
    wait_profiled(profd, ctl, target.pid)
    ctl.run('detach', '--for=600', target.pid)
    found = ctl.target(target.pid)
    check(found['state'] == 'left_out' and
          found['last_error'] in ('released for 600 s', 'released for 599 s'),
          f'{found}')
    check('left out' in ctl.run('start', target.pid, status=1).stderr, 'start')
    check('left out' in ctl.run('record', target.pid, '-d', '1', '--to', 'json',
                                status=1).stderr, 'record')
    check('attached' in ctl.run('attach', target.pid).stdout, 'attach')
    wait_profiled(profd, ctl, target.pid)
    check('already' in ctl.run('attach', target.pid).stdout, 'a no-op')
    # A detached process is not attached again by the end of a release.
    ctl.run('detach', target.pid)
    check('left out' in ctl.run('detach', '--for', 1, target.pid).stdout, 'detached')
    check(ctl.target(target.pid)['last_error'] == 'detached', 'as before')
    for args, why in ((('detach', '--for', 'x', '1'), 'not a number of seconds'),
                      (('detach', '--for', '0', '1'), 'not a number of seconds'),
                      (('detach', '--for', '86401', '1'), 'from 1 to 86400'),
                      (('stop', '--for', '1', '1'), 'not an option of this'),
                      (('detach', '--for', '1'), 'detach takes a pid')):
        check(why in ctl.run(*args, status=2).stderr, f'{args}')
    profd.interrupt()


class Leaving:
    """A process that capture detaches from late, since its resumed call runs now and then
    (for 10 s at most); and sentry-profctl detach, which waits for that."""

    def __init__(self, box, *args, given=True):
        self.box = box
        self.writer, self.reader = start_writer(box)
        self.pid = self.writer.pid
        targets = [self.writer] if given else [box.napper()]
        self.profd, self.ctl = listening(box, targets, '--rate', '1000',
                                         process_group=0)
        if not given:
            self.ctl.run('attach', self.pid)
        wait_profiled(self.profd, self.ctl, self.pid)
        self.fds = self.descriptors()
        self.data = until_in_a_rest(self.writer, self.reader)
        self.is_held = threading.Event()
        self.reading = threading.Thread(target=self.hold, daemon=True)
        self.reading.start()
        self.waiting = [self.start(*args)]
        self.ctl.wait_state(self.pid, 'detaching')

    def hold(self):
        while not self.is_held.wait(0.2):
            self.data += os.read(self.reader, 4096)

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.profd.pid}/fd'))

    def start(self, *args):
        return self.box.start([BUILD / 'sentry-profctl', 'detach', *args, self.pid,
                               '--socket', self.ctl.path])

    def go_on(self):
        """Lets capture detach within two seconds."""
        self.is_held.set()
        self.reading.join()

    def check_success(self):
        for program in self.waiting:
            check(program.wait() == 0, program.report())
            check(program.stdout == f'process {self.pid}: detached\n',
                  program.stdout)
        check(are_free(self.pid), 'its threads')

    def read(self):
        self.is_held.set()
        self.reading.join()
        read_all(self.writer, self.reader, self.data)


def test_several_wait(box):
    """Also one whose client dies, and one that asks on the same connection. On a busy
    machine capture may detach before all have asked."""
    harness.in_turns(lambda: several_wait(box))


def several_wait(box):
    it = Leaving(box)
    it.waiting.append(it.start())
    it.waiting.append(it.start('--for', '5'))
    dying, s = it.start(), control.dial(it.ctl.path)
    s.send(control.hello(version=4))
    s.send(control.request(control.DETACH, it.pid, tag=2))
    s.send(control.request(control.PROFILER_ID, it.pid, tag=3))
    wait_for(lambda: it.descriptors() > it.fds + 4 or are_free(it.pid), 'its connections')
    check(control.answer(s)[0] == 0, 'hello')
    dying.signal(signal.SIGKILL)
    if are_free(it.pid):
        it.read()
        it.profd.interrupt()
        return ['it was let go too early']
    it.go_on()
    it.check_success()
    # Old clients wait, too, and the answers have the order of the requests.
    check(control.answer(s)[:2] == (OK, 6), 'detach')
    check(control.answer(s)[0] == 2, 'the next request')
    s.close()
    check(it.ctl.target(it.pid)['last_error'] == 'detached', 'for good')
    wait_for(lambda: it.descriptors() <= it.fds, 'the connections are closed')
    it.read()
    it.profd.interrupt()
    return []


def test_a_process_of_no_section(box):
    """It is shown as detaching until it is let go, and then forgotten."""
    it = Leaving(box, given=False)
    it.go_on()
    it.check_success()
    wait_for(lambda: it.ctl.target(it.pid) is None, 'it is forgotten')
    it.read()
    it.profd.interrupt()


def test_the_process_ends_meanwhile(box):
    it = Leaving(box)
    it.go_on()
    it.writer.end()
    it.check_success()
    it.profd.finish()


def test_attached_meanwhile(box):
    it = Leaving(box)
    before = it.ctl.target(it.pid)['samples_taken']
    it.ctl.run('attach', it.pid)
    program, = it.waiting
    check(program.wait() == 1 and 'is profiled again' in program.stderr,
          program.report())
    it.go_on()
    # Capture takes no samples while it detaches.
    wait_for(lambda: it.ctl.target(it.pid)['samples_taken'] > before + 20, 'a new run')
    it.read()
    it.profd.finish()


def test_the_daemon_ends_meanwhile(box):
    it = Leaving(box)
    it.profd.signal(signal.SIGINT)
    it.go_on()
    it.check_success()
    it.read()
    it.profd.finish()


def test_the_daemon_is_suspended_meanwhile(box):
    it = Leaving(box)
    it.profd.signal(signal.SIGTSTP)
    it.go_on()
    it.check_success()
    it.profd.signal(signal.SIGCONT)
    wait_for(lambda: it.ctl.target(it.pid)['state'] == 'left_out', 'it stays free')
    it.read()
    it.profd.interrupt()


def test_its_section_is_removed_meanwhile(box):
    writer, reader = start_writer(box)
    pid_file = box.dir / 'writer.pid'
    pid_file.write_text(f'{writer.pid}\n')
    profd, ctl, path = configured(
        box, section('w', os.path.realpath(f'/proc/{writer.pid}/exe'),
                     f'pid_file = {pid_file}', 'rate_hz = 1000', 'autostart = yes'))
    wait_profiled(profd, ctl, writer.pid)
    data = until_in_a_rest(writer, reader)
    waiting = box.start([BUILD / 'sentry-profctl', 'detach', '--for', '60',
                         writer.pid, '--socket', ctl.path])
    ctl.wait_state(writer.pid, 'detaching')
    path.write_text('')
    ctl.run('reload')
    check(waiting.wait() == 0 and are_free(writer.pid), waiting.report())
    wait_for(lambda: ctl.status()['targets'] == [], 'it is forgotten')
    read_all(writer, reader, data)
    profd.interrupt()


def test_recordings(box):
    """That of a released process goes on with the next run, and that of a detached one
    ends. One process is an instance for its recording only."""
    for given in True, False:
        target = box.napper()
        profd, ctl = listening(box, [target if given else box.napper()])
        recording = Recording(ctl.path, target.pid)
        check(isinstance(recording.next(), dict), 'a chunk')
        ctl.run('detach', '--for', 1, target.pid)
        check(are_free(target.pid), 'it is let go')
        wait_for(lambda p=target.pid: harness.tracer(p), 'it is profiled again')
        for _ in range(3):
            check(isinstance(recording.next(), dict), 'a chunk')
        check(recording.lost == 0, f'{recording.lost} lost')
        ctl.run('detach', target.pid)
        check(are_free(target.pid), 'it is let go')
        check(recording.rest()[1] == LEFT_OUT, 'its end')
        recording.close()
        profd.interrupt()


def test_rights(box):
    stranger.need_root()
    own = stranger.target(box, 'shares')
    theirs = box.napper()
    profd, ctl = listening(box, [theirs, own])
    profd.wait_attached()
    for args in ('detach', '--for', 1, theirs.pid), ('detach', theirs.pid):
        done = ctl.run(*args, uid=stranger.UID, status=1)
        check('not permitted' in done.stderr, done.stderr)
    check(harness.tracer(theirs.pid), 'nothing has changed')
    ctl.run('detach', '--for', 1, own.pid, uid=stranger.UID)
    check(are_free(own.pid), 'its own')
    profd.wait_attached().interrupt()


def test_other_versions(box):
    """An older daemon does not know the request, or answers detach too early."""
    path = box.make_dir('run') / 's'
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(1)
        for args, result, status, why in (
                (('--for', '1'), BAD_VERSION, 1, 'does not support this request'),
                ((), OK, 0, 'may be detaching still'),
                ((), TIMED_OUT, 1, 'is still traced by sentry-profd')):
            done = box.start([BUILD / 'sentry-profctl', 'detach', *args, '7',
                              '--socket', path])
            s, _ = listener.accept()
            for n in result * 0, result:
                kind, size, tag = struct.unpack_from('=3I', s.recv(512))
                check((kind, size) != (RELEASE, 80) or args, f'{kind}')
                s.send(struct.pack('=3I2Iii2I36s256s', 2, 328, tag, n, 4, 7, 0, 0, 0,
                                   b'', b''))
            s.close()
            check(done.wait() == status and why in done.stderr, done.report())


def dumper(play):
    """Builds the program, and starts the daemon and the program. Returns a function that
    sends the program a line, and waits for the answer."""
    exe = play.directory / 'dumper'
    # The section matches the compiler, too.
    subprocess.run(
        ['gcc', '-Wall', '-Wextra', '-Werror', '-pthread', '-o', exe, HERE / 'dumper.c',
         f'-I{ROOT}', BUILD / 'libsentry_profd.a'], check=True)
    play.start_daemon()
    play.start_app([exe, (BUILD / 'targets/attacher').resolve()])

    def ask(line, pattern):
        before = play.app.stdout.count('\n')
        play.tell(line)
        wait_for(lambda: pattern in play.app.stdout.split('\n', before)[-1],
                 f'{line}: {pattern}')
    return ask


def test_a_program_that_dumps_itself(box):
    play = Play(box, lifecycle='manual\nautostart = yes')
    ask = dumper(play)
    for _ in range(3):
        wait_for(lambda: not are_free(play.pid), 'it is profiled')
        wait_samples(play.control, play.pid, 20)
        ask('release 1', 'dumped 0\n')
    wait_for(lambda: not are_free(play.pid), 'it is profiled again')
    wait_samples(play.control, play.pid, 20)
    said = play.app.stdout.splitlines()
    check([line for line in said if 'ready' not in line] ==
          ['released 0', f'attached {len(harness.threads(play.pid))} refused 0',
           'dumped 0'] * 3, play.app.stdout)
    play.profd.interrupt()
    check(len({c['profiler_id'] for c in play.server.chunks}) == 4, 'four runs')


def test_a_root_span_within_a_release(box):
    """It starts no run and has no profile, and its end starts none either."""
    play = Play(box)
    ask = dumper(play)
    play.wait_state('stopped')
    ask('release 1', 'dumped 0\n')
    ask('release 3', 'dumped 0\n')
    check(play.state() == 'left_out', 'it is released')
    ask('open', 'opened')
    ask('id', 'id 0 \n')
    ask('close', 'closed')
    check(are_free(play.pid), 'a span starts no run')
    play.wait_state('stopped')
    check(are_free(play.pid), 'no span is open')
    play.profd.interrupt()
    check(play.server.chunks == [], 'no chunk')


def test_a_root_span_around_releases(box):
    """The run that follows has another id."""
    play = Play(box)
    ask = dumper(play)
    play.wait_state('stopped')
    ask('open', 'opened')
    for _ in range(2):
        wait_for(lambda: not are_free(play.pid), 'it is profiled')
        wait_samples(play.control, play.pid, 20)
        ask('id', 'id 32 ')
        ask('release 1', 'dumped 0\n')
        ask('id', 'id 0 \n')
    ask('close', 'closed')
    play.wait_state('stopped')
    check(are_free(play.pid), 'no span is open')
    play.profd.interrupt()
    check(len({c['profiler_id'] for c in play.server.chunks}) == 2, 'two runs')


def test_without_a_daemon(box):
    play = Play(box)
    ask = dumper(play)
    play.profd.interrupt()
    ask('release 1', 'dumped 0\n')
    check('released -2\n' in play.app.stdout, play.app.stdout)


if __name__ == '__main__':
    harness.main(globals())
