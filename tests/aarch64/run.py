#!/usr/bin/python3
"""Runs tests for aarch64 as run_tests.py does. Usage:
run.py MACHINE BUILD [--pages 16k] [--user TEST...] [--exact TEST...] [--fast TEST...] [--absent SOURCE...]
run.py MACHINE BUILD [--pages 16k] [--cpu CPU] --command COMMAND

MACHINE is the directory that prepare.sh has made, BUILD that of the cross build.
--pages: boots the kernel that has pages of this size.
--user: by qemu-user, without a machine. The test starts no program, and traces none.
--exact: in a machine whose clock counts instructions, so that lengths of time do not depend on the
  load of the host. It uses one processor of the host, and a program that polls takes long.
--fast: in a machine that uses two processors of the host and its clock.
--command: a shell command, in a machine as of --fast. --cpu: the processor, as QEMU calls it.
--absent: sources of tests and targets that are not built for aarch64.

Each test of a program or script in a machine has LIMIT_S seconds of the machine's clock. The last
lines name the tests that did not end, and those that are absent.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

# A machine of --fast has the host's clock, and less of the host's processors than it thinks.
LIMIT_S = {'exact': 60, 'fast': 180}
# For all tests of a machine. A machine that hangs says nothing.
MACHINE_LIMIT_S = 5400
POLL_S = 0.5
ROOT = pathlib.Path(__file__).resolve().parents[2]

QEMU = ('qemu-system-aarch64', '-M', 'virt', '-smp', '2', '-m', '3G', '-nodefaults', '-nographic',
        '-no-user-config', '-no-reboot', '-append', 'console=ttyAMA0 quiet panic=-1')
# pauth-impdef: return addresses are signed by a hash that is quick to compute.
CPU = 'max,pauth-impdef=on'
# sleep=on: with sleep=off the clock of an idle machine jumps to the next timer, again and again while
# the machine waits for its disk: six minutes passed while an archive was read on a busy host.
CLOCKS = {'exact': ('-accel', 'tcg,thread=single', '-icount', 'shift=1,sleep=on'),
          'fast': ('-accel', 'tcg,thread=multi')}

COMMAND = '''mkdir /tmp/work
tar -x -f /dev/vdb -C /tmp/work
cd /tmp/work
export BUILD={build}
{command}
status=$?
cp -r {build}/log /out
exit $status
'''
TESTS = ("LIMIT_S={limit} WORKERS={workers} SECOND_TRY={second_try} tests/tools/run_tests.py '' "
         '{tests}')


class Results:
    """Prints the output of tests, and keeps which of them have ended."""

    def __init__(self):
        self.ended = set()
        self.failed = False
        self.missing = []

    def line(self, line):
        print(line, end='', flush=True)
        found = re.match(r'(?:ok|FAIL|skip) +([^ :]+)', line)
        if found:
            self.ended.add(found[1])

    def end(self, build, tests, status, why):
        self.failed |= status != 0
        for test in tests:
            name = test.removeprefix(f'{build}/').replace('tests/', '', 1)
            if name not in self.ended:
                self.missing.append(f'{name}: {why}')


class Machine:
    """A machine that runs tests and turns itself off."""

    def __init__(self, arguments, clock):
        self.tests = getattr(arguments, clock)
        command = arguments.command or TESTS.format(
            limit=LIMIT_S[clock], workers=2 if clock == 'fast' else 1,
            second_try=os.environ.get('SECOND_TRY', ''), tests=shlex.join(self.tests))
        self.build = arguments.build
        self.share = tempfile.TemporaryDirectory(prefix='aarch64.')
        self.out = pathlib.Path(self.share.name)
        (self.out / 'vm-init').write_bytes((ROOT / 'tests/aarch64/vm-init').read_bytes())
        (self.out / 'vm-init').chmod(0o755)
        (self.out / 'cmd').write_text(COMMAND.format(build=self.build, command=command))
        (self.out / 'output').touch()
        machine = arguments.machine
        drives = ()
        for path in (machine / 'disk.img', machine / 'tests.tar'):
            drive = f'd{len(drives)}'
            drives += ('-drive', f'if=none,id={drive},file={path},format=raw,snapshot=on,'
                       'cache=unsafe', '-device', f'virtio-blk-pci,drive={drive}')
        self.process = subprocess.Popen(
            ['timeout', str(MACHINE_LIMIT_S), *QEMU, '-cpu', arguments.cpu, *CLOCKS[clock],
             '-kernel', machine / f'linux{arguments.suffix}',
             '-initrd', machine / f'initrd{arguments.suffix}',
             '-serial', f'file:{self.out}/console', *drives, '-device', 'virtio-rng-pci',
             '-fsdev', f'local,id=out,path={self.out},security_model=none',
             '-device', 'virtio-9p-pci,fsdev=out,mount_tag=out'], stdin=subprocess.DEVNULL)

    def follow(self, results):
        """Prints the output until the machine is off."""
        with open(self.out / 'output', errors='replace') as output:
            ended = False
            line = ''
            while not ended:
                ended = self.process.poll() is not None
                while part := output.readline():
                    line += part
                    if line.endswith('\n'):
                        results.line(line)
                        line = ''
                time.sleep(0 if ended else POLL_S)
        try:
            status = int((self.out / 'status').read_text())
        except (FileNotFoundError, ValueError):
            status = 1
            print((self.out / 'console').read_text(errors='replace')[-2000:])
        results.end(self.build, self.tests, status, f'the machine has ended before, qemu with '
                    f'{self.process.returncode}')

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        self.process.wait()
        self.share.cleanup()


def run_user(arguments, results):
    env = dict(os.environ, BUILD=arguments.build,
               RUNNER=f'qemu-aarch64 -L {arguments.machine}/root')
    with subprocess.Popen([ROOT / 'tests/tools/run_tests.py', '', *arguments.user], env=env,
                          stdout=subprocess.PIPE, text=True) as tests:
        for line in tests.stdout:
            results.line(line)
    results.end(arguments.build, arguments.user, tests.returncode, 'run_tests.py has ended')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('machine', type=pathlib.Path)
    parser.add_argument('build')
    for option in ('--user', '--exact', '--fast', '--absent'):
        parser.add_argument(option, nargs='*', default=[])
    parser.add_argument('--pages', default='')
    parser.add_argument('--cpu', default=CPU)
    parser.add_argument('--command')
    arguments = parser.parse_args()
    arguments.suffix = f'-{arguments.pages}' if arguments.pages else ''
    results = Results()
    # So that the machines end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    subprocess.run(['tar', '-c', '-f', arguments.machine / 'tests.tar', '--exclude=*/obj',
                    '--exclude=*.a', 'tests', 'docs', 'lib', 'daemon', 'proto', 'systemd',
                    'Makefile', 'README.md', arguments.build], cwd=ROOT, check=True)
    with contextlib.ExitStack() as stack:
        exact = arguments.exact and stack.enter_context(
            contextlib.closing(Machine(arguments, 'exact')))
        if arguments.user:
            run_user(arguments, results)
        if exact:
            exact.follow(results)
        if arguments.fast or arguments.command:
            with contextlib.closing(Machine(arguments, 'fast')) as fast:
                fast.follow(results)
    for name in results.missing:
        print(f'did not end: {name}')
    for source in arguments.absent:
        print(f'not built for aarch64: {source}')
    return 1 if results.failed or results.missing else 0


if __name__ == '__main__':
    sys.exit(main())
