#!/usr/bin/python3
"""LeakSanitizer traces its own process when that ends, and ends a process that is
traced already with an error. sentry-profd leaves such programs alone, unless
detect_leaks=0 switches LeakSanitizer off or leak_check = attach says otherwise.
The programs are those of tests/targets/leaks_*.c, which end with 0.
"""

import os
import re
import shutil
import signal
import subprocess

import harness
import stranger
from control import Control
from harness import BUILD, check, tracer, wait_for
from service import Service
from test_doctor import Findings

harness.filters_kill()

TARGETS = BUILD / 'targets'
ASAN = ('leaks_asan', 'leaks_asan_static', 'leaks_asan_clang')
LSAN = ('leaks_lsan', 'leaks_lsan_clang')
# These do not run everywhere: clang's runtime is in a directory that the dynamic linker does not
# know, and gcc's static one may fail at its start.
ASAN_FILES, LSAN_FILES = ('leaks_asan_clang_shared',), ('leaks_lsan_static',)
OTHERS = ('leaks_tsan', 'leaks_ubsan', 'leaks_none')
# gcc's shared runtime, for LD_PRELOAD.
LIBASAN = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True, text=True,
                         check=True).stdout.strip()
OFF = {'ASAN': 'ASAN_OPTIONS=detect_leaks=0', 'LSAN': 'LSAN_OPTIONS=detect_leaks=0'}
NOT_STARTED = r'^sentry-profd: the command is not started: it has LeakSanitizer, .*' \
    r'\({}\), .*\(--leak-check attach\)$'
NOT_PROFILED = r'^sentry-profd: (?:warning: )?process {} \(.*\) is not profiled: it has ' \
    r'LeakSanitizer, .*{}.*leak.check'
TRACED = 'LeakSanitizer does not work under ptrace'
STATUS = 'has LeakSanitizer'


def env(**extra):
    """Without the options of the caller, who may test with sanitizers."""
    found = harness.environment(**extra)
    for name in ('ASAN_OPTIONS', 'LSAN_OPTIONS', 'LD_PRELOAD'):
        if name not in extra:
            found.pop(name, None)
    return found


def target(box, name, **extra):
    """Starts a program that runs until end()."""
    return box.target(name, stdin=subprocess.PIPE, env=env(**extra))


def end(program, status=0):
    program.process.stdin.close()
    check(program.wait() == status, program.report())


def command(box, *argv, options=(), **extra):
    """Runs a command to its end; returns its run and its exit status."""
    profd = box.profd([], *options, '--', *argv, env=env(**extra))
    return profd, profd.wait()


def check_ran(profd, status):
    check(status == 0 and 'ready' in profd.stdout and TRACED not in profd.stderr,
          profd.report())


def check_refused(profd, status, off=OFF['ASAN']):
    check(status == 125 and 'ready' not in profd.stdout and
          re.search(NOT_STARTED.format(off), profd.stderr, re.M), profd.report())


def script(box, interpreter):
    path = box.make_dir('script') / 'script'
    path.write_text(f'#! {interpreter} argument\n')
    path.chmod(0o755)
    return path


def test_the_programs(box):
    """Each ends with 0 alone, and the first ones do not under a tracer. So these
    tests test something."""
    for name in (*ASAN, *LSAN, *OTHERS):
        end(target(box, name))
    profd, status = command(box, TARGETS / 'leaks_asan', options=('--leak-check', 'attach'))
    check(status == 1 and TRACED in profd.stderr, profd.report())


def test_a_command(box):
    for names, off in ((ASAN + ASAN_FILES, OFF['ASAN']), (LSAN + LSAN_FILES, OFF['LSAN'])):
        for name in names:
            check_refused(*command(box, TARGETS / name), off)
    for name in OTHERS:
        check_ran(*command(box, TARGETS / name))


def test_a_command_with_options(box):
    """The last detect_leaks counts. A program without AddressSanitizer reads
    LSAN_OPTIONS only."""
    asan, lsan = TARGETS / 'leaks_asan_static', TARGETS / 'leaks_lsan'

    check_ran(*command(box, asan, ASAN_OPTIONS='detect_leaks=0'))
    check_ran(*command(box, asan, ASAN_OPTIONS='x=1,detect_leaks=1 detect_leaks=0:y=2'))
    check_ran(*command(box, asan, LSAN_OPTIONS='detect_leaks=false'))
    check_ran(*command(box, lsan, LSAN_OPTIONS='detect_leaks=0'))
    check_refused(*command(box, asan, ASAN_OPTIONS='detect_leaks=0:detect_leaks=1'))
    check_refused(*command(box, asan, ASAN_OPTIONS='detect_leaks=0',
                           LSAN_OPTIONS='detect_leaks=1'))
    check_refused(*command(box, lsan, ASAN_OPTIONS='detect_leaks=0'), OFF['LSAN'])


def test_a_script(box):
    """The kernel executes the interpreter, which may be a script itself."""
    one = script(box, TARGETS / 'leaks_asan')
    two = script(box, one)

    check_refused(*command(box, one))
    check_refused(*command(box, two))
    check_refused(*command(box, two.name, options=(), PATH=f'{two.parent}:/bin:/usr/bin'))
    check_ran(*command(box, script(box, script(box, TARGETS / 'leaks_none'))))


def test_a_command_of_a_user(box):
    stranger.need_root()
    directory = stranger.copy(box, ['targets/leaks_asan', 'targets/leaks_none'])
    check_refused(*command(box, directory / 'leaks_asan', options=('--user', 'nobody')))
    check_ran(*command(box, directory / 'leaks_none', options=('--user', 'nobody')))
    # The kernel executes a file that its user may not read; then the broker knows nothing of it.
    (directory / 'leaks_none').chmod(0o711)
    check_ran(*command(box, directory / 'leaks_none', options=('--user', 'nobody')))


def test_a_preloaded_command(box):
    check_refused(*command(box, TARGETS / 'leaks_none',
                           options=('--leak-check', 'leave'), LD_PRELOAD=LIBASAN))


def check_left(profd, status, name):
    """The program ended with 0 after sentry-profd had left it."""
    check(status == 0 and TRACED not in profd.stderr and
          re.search(rf'^sentry-profd: (?:warning: )?process \d+ \({name[:15]}\) is not profiled: it has '
                    'LeakSanitizer', profd.stderr, re.M), profd.report())


def test_an_exec_of_the_command(box):
    """A shell that executes the program, in its own process or in a child."""
    path = TARGETS / 'leaks_asan'
    check_left(*command(box, 'sh', '-c', f'exec {path}'), path.name)
    for options in ((), ('--children',)):
        profd, status = command(box, 'sh', '-c', f'{path}; exit $?', options=options)
        check(status == 0 and TRACED not in profd.stderr, profd.report())
    check_left(profd, status, path.name)


def test_make(box):
    """A program that is executed again and again, beside others."""
    makefile = box.make_dir('make') / 'Makefile'
    makefile.write_text(f'all:\n' + ''.join(
        f'\t{TARGETS / name} </dev/null\n' for name in ('leaks_none', 'leaks_asan', 'leaks_lsan') * 3))
    profd, status = command(box, 'make', '-f', makefile, options=('--children',))
    check(status == 0 and TRACED not in profd.stderr and 'ready' in profd.stdout, profd.report())
    for name in ('leaks_asan', 'leaks_lsan'):
        check(profd.stderr.count(f'({name})') == 3, profd.report())
    check('(leaks_none)' not in profd.stderr, profd.report())


def test_an_exec_with_leaks_off(box):
    profd, status = command(box, 'sh', '-c', f'exec {TARGETS / "leaks_asan"}',
                            ASAN_OPTIONS='detect_leaks=0')
    check_ran(profd, status)
    check('is not profiled' not in profd.stderr, profd.report())


def test_an_exec_all_the_same(box):
    profd, status = command(box, 'sh', '-c', f'exec {TARGETS / "leaks_asan"}',
                            options=('--leak-check', 'attach'))
    check(status == 1 and TRACED in profd.stderr, profd.report())


def test_pid(box):
    for name, off in (('leaks_asan', OFF['ASAN']), ('leaks_asan_static', OFF['ASAN']),
                      ('leaks_lsan', OFF['LSAN'])):
        program = target(box, name)
        profd = box.profd([program])
        check(profd.wait() == 1 and
              re.search(NOT_PROFILED.format(program.pid, off), profd.stderr, re.M) and
              profd.stderr.count('is not profiled') == 1, profd.report())
        check(tracer(program.pid) == 0, 'it is not traced')
        end(program)


def test_pid_of_what_a_process_maps(box):
    """A program without a sanitizer, with a library that has one."""
    program = target(box, 'leaks_none', LD_PRELOAD=LIBASAN)
    profd = box.profd([program])
    check(profd.wait() == 1 and re.search(NOT_PROFILED.format(program.pid, OFF['ASAN']),
                                          profd.stderr, re.M), profd.report())
    end(program)


def test_pid_with_leaks_off(box):
    programs = [target(box, 'leaks_asan', ASAN_OPTIONS='verbosity=0:detect_leaks=0'),
                target(box, 'leaks_lsan', LSAN_OPTIONS='detect_leaks=0'),
                target(box, 'leaks_tsan'), target(box, 'leaks_ubsan')]
    profd = box.profd(programs).wait_attached()
    for program in programs:
        end(program)
    profd.finish()


def test_pid_beside_another(box):
    """The other process is profiled."""
    asan, other = target(box, 'leaks_asan'), target(box, 'leaks_none')
    profd = box.profd([asan, other])
    wait_for(lambda: tracer(other.pid) != 0, 'it is traced')
    end(asan)
    end(other)
    profd.finish(1)


def test_pid_all_the_same(box):
    program = target(box, 'leaks_asan')
    profd = box.profd([program], '--leak-check', 'attach').wait_attached()
    end(program, 1)
    check(TRACED in program.stderr, program.report())
    profd.finish()


class Section(Service):
    """A service whose section matches copies of these programs."""

    def __init__(self, box, names, **keys):
        self.names = names
        super().__init__(box, {'one': keys})
        self.control = Control(box, self.dir / 'socket')

    def add_exe(self, name):
        directory = self.dir / 'bin' / name
        directory.mkdir(parents=True)
        for of in self.names:
            shutil.copy(TARGETS / of, directory / of)
        self.exe[name] = directory / '*'

    def target(self, name, **extra):
        program = self.box.start([self.exe['one'].parent / name], stdin=subprocess.PIPE,
                                 env=env(**extra))
        program.wait_line('ready.*')
        return program

    def wait_left_out(self, program):
        found = self.control.wait_state(program.pid, 'left_out')
        check(STATUS in found['last_error'] and found['samples_taken'] == 0, f'{found}')
        check(tracer(program.pid) == 0, 'it is not traced')

    def left_out(self):
        metrics = self.control.run('metrics').stdout
        return int(re.search(r'processes_left_out\{reason="leak_check"\} (\d+)', metrics)[1])


def test_a_section(box):
    service = Section(box, (*ASAN, *LSAN, *OTHERS))
    left = [service.target(name) for name in (*ASAN, *LSAN)]
    profiled = [service.target(name) for name in OTHERS]
    profiled.append(service.target('leaks_asan', ASAN_OPTIONS='detect_leaks=0'))
    for program in profiled:
        wait_for(lambda of=program: tracer(of.pid) != 0, 'it is traced')
    for program in left:
        service.wait_left_out(program)
        # A second line: /proc showed the program before the event of its exec had been read.
        said = re.findall(NOT_PROFILED.format(program.pid, 'detect_leaks=0'),
                          service.profd.stderr, re.M)
        check(len(said) in (1, 2), service.profd.stderr)
    check(service.left_out() == len(left), 'the metrics count them')
    for program in (*left, *profiled):
        end(program)
    wait_for(lambda: service.left_out() == 0, 'the metrics forget them')
    service.stop()


def test_a_section_that_attaches(box):
    service = Section(box, ('leaks_asan',), leak_check='attach')
    program = service.target('leaks_asan')
    wait_for(lambda: tracer(program.pid) != 0, 'it is traced')
    end(program, 1)
    service.stop()


def test_a_reload(box):
    """leak_check = attach has an effect on processes that were left."""
    service = Section(box, ('leaks_asan',))
    program = service.target('leaks_asan')
    service.wait_left_out(program)
    service.reload({'one': {'leak_check': 'attach'}})
    wait_for(lambda: tracer(program.pid) != 0, 'it is traced')
    program.end()
    service.stop()


def test_an_exec_into_another_program(box):
    """A process that was left is looked at again when it executes another
    program."""
    service = Section(box, ('leaks_asan', 'leaks_none'))
    program = service.target('leaks_asan')
    service.wait_left_out(program)
    program.process.stdin.write(f'{service.exe["one"].parent}/leaks_none\n'.encode())
    program.process.stdin.flush()
    wait_for(lambda: tracer(program.pid) != 0, 'it is traced')
    end(program)
    service.stop()


def test_attach_and_recordings(box):
    program = target(box, 'leaks_asan')
    service = Section(box, ('leaks_none',))
    ctl = service.control

    failed = ctl.run('attach', program.pid, status=1)
    check(STATUS in failed.stderr and OFF['ASAN'] in failed.stderr, failed.stderr)
    ctl.wait_state(program.pid, 'left_out')
    for args in (('record', program.pid, '--duration', 1, '-o', box.dir / 'x.html'),
                 ('stack', program.pid), ('start', program.pid)):
        failed = ctl.run(*args, status=1)
        check(STATUS in failed.stderr, f'{args}: {failed.stderr}')
    check(tracer(program.pid) == 0, 'it is not traced')
    end(program)
    # Without a daemon for this process: a recording alone.
    program = target(box, 'leaks_asan')
    failed = ctl.run('record', program.pid, '--duration', 1, '-o', box.dir / 'y.html', status=1)
    check(STATUS in failed.stderr, failed.stderr)
    end(program)
    service.stop()


def test_attach_of_others(box):
    service = Section(box, ('leaks_none',))
    for name, extra in (('leaks_none', {}), ('leaks_tsan', {}),
                        ('leaks_asan', {'ASAN_OPTIONS': 'detect_leaks=0'})):
        program = target(box, name, **extra)
        service.control.run('attach', program.pid)
        wait_for(lambda of=program: tracer(of.pid) != 0, 'it is traced')
        end(program)
    service.stop()


def test_stack_without_a_daemon(box):
    program = target(box, 'leaks_asan')
    done = subprocess.run([BUILD / 'sentry-profctl', 'stack', str(program.pid)], check=False,
                          capture_output=True, text=True,
                          env=env(SENTRY_PROFD_SOCKET=str(box.dir / 'none')))
    check(done.returncode == 1, f'{done}')
    end(program)


def test_doctor(box):
    program = target(box, 'leaks_asan_static')
    found = Findings(box, program.pid)
    found.check('LeakSanitizer', 'fault', rf'leaks_asan_static has it: .*{OFF["ASAN"]}')
    end(program)
    program = target(box, 'leaks_asan', ASAN_OPTIONS='detect_leaks=0')
    Findings(box, program.pid).check('LeakSanitizer', 'ok', 'switches it off')
    end(program)
    program = target(box, 'leaks_asan')
    socket = box.dir / 'attach.sock'
    box.profd([program], '--socket', socket, '--leak-check', 'attach').wait_attached()
    Findings(box, program.pid, socket=socket).check(
        'LeakSanitizer', 'warning', rf'leak_check = attach .* ends with an error.*{OFF["ASAN"]}')
    end(program, status=1)
    program = target(box, 'leaks_tsan')
    check(not Findings(box, program.pid).of('LeakSanitizer'), 'nothing of others')
    end(program)


def test_the_death_of_unwind(box):
    """unwind dies while it is asked: it is asked again, and the process is left."""
    service = Section(box, ('leaks_asan', 'leaks_none'))
    first = service.target('leaks_none')
    wait_for(lambda: tracer(first.pid) != 0, 'it is traced')
    unwind, = service.profd.helpers()['unwind']
    os.kill(unwind, signal.SIGSTOP)
    program = service.target('leaks_asan')
    service.wait_known(program.pid)
    os.kill(unwind, signal.SIGKILL)
    service.wait_left_out(program)
    end(program)
    end(first)
    service.stop()


if __name__ == '__main__':
    harness.main(globals())
