#!/usr/bin/python3
"""sentry-profctl top, in a terminal of tmux."""

import os
import re
import shutil
import signal
import sys

import harness
import stranger
from harness import BUILD, check, wait_for
from terminal import Terminal
from test_control import listening

EXE = BUILD / 'sentry-profctl'
# A row: the columns of percentages of the last second, those of seconds since
# the start, and the name with the text after it.
ROW = re.compile(r'((?: *(?:-|[\d.]+))+)  (\S.*)')
HEADS = ['SELF%', 'TOTAL%', 'WAIT%', 'SELF s', 'TOTAL s', 'WAIT s']
READY_HEADS = ['READY%', 'READY s']

# A program whose function work() runs for a fourth of the time: the first row.
WORKS = ('naps', 1, 5000, 15000)


def number(text):
    return 0 if text == '-' else float(text)


def heads(lines):
    """Returns the heads of the columns of numbers."""
    return re.findall(r'[A-Z]+(?:%| s\b)', lines[2])


def rows(lines, columns=None):
    """Returns [(the name with the text after it, the numbers of HEADS)].

    The columns of ready time are there on a busy machine only.
    """
    at = [heads(lines).index(head) for head in columns or HEADS
          if head in heads(lines)]
    found = [ROW.fullmatch(line) for line in lines[3:-2]]
    return [(m[2], [number(m[1].split()[i]) for i in at]) for m in found
            if m and len(m[1].split()) == len(heads(lines))]


def row(lines, name):
    return next((numbers for text, numbers in rows(lines)
                 if text.split()[0] == name), None)


def wait_rows(terminal, condition, what):
    """Waits until condition is true for the lines on the screen."""
    def look():
        lines = terminal.screen()
        return condition(lines) and lines
    try:
        return wait_for(look, what)
    except harness.Failure as failure:
        seen = '\n'.join(terminal.screen())
        raise harness.Failure(f'{failure}\n{seen}') from None


def first_is(name):
    return lambda lines: rows(lines)[:1] and \
        rows(lines)[0][0].split()[0] == name


def seconds(lines):
    found = re.search(r'\), (\d+) s', lines[0])
    return int(found[1]) if found else 0


def test_a_target(box):
    """A target's functions with their shares, and every key."""
    target = box.target('shares')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    terminal = Terminal(box)
    terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
    # The daemon has --symbols names.
    wait_rows(terminal, lambda at: any('symbols = lines in [profiler]' in line for line in at),
              'what is lacking')
    # With some 400 samples the share is within 0.12 of the true one, five
    # times the standard deviation.
    lines = wait_rows(terminal, lambda at: first_is('busy_seventy')(at) and
                      (row(at, 'main') or [0] * 6)[4] > 4, 'its functions')
    check(lines[0].startswith(f'process {target.pid} (shares), ') and
          ' 2 threads' in lines[0], lines[0])
    check('by self time of the last second' in lines[1], lines[1])
    check(max(map(len, lines)) <= 80 and len(lines) == 25, f'{lines}')
    seventy, thirty = row(lines, 'busy_seventy'), row(lines, 'busy_thirty')
    share = seventy[3] / (seventy[3] + thirty[3])
    check(0.58 < share < 0.82, f'{seventy} {thirty}')
    check(0 < seventy[0] <= seventy[1] and seventy[3] == seventy[4],
          f'{seventy}')
    main = row(lines, 'main')
    check(main[3] == 0 and main[4] >= seventy[3] + thirty[3] - 0.02,
          f'{main}')

    terminal.type('w')
    lines = terminal.wait('by waiting time of')
    check(first_is('clock_nanosleep')(lines), f'{lines}')
    terminal.type('a')
    terminal.wait('by waiting time since the start')
    terminal.type('a', 't')
    lines = terminal.wait('by total time of the last second')
    check(rows(lines)[0][1][1] == max(n[1] for _, n in rows(lines)),
          f'{lines}')

    # From here on sorted by a column that does not change in a second without
    # a processor.
    terminal.type('a', 'h')
    lines = terminal.wait('threads, by total time since the start')
    check({text.split()[0] for text, _ in rows(lines)} ==
          {'main', 'sleeper'}, f'{lines}')
    # The second row is selected, wherever it moves.
    terminal.type('Down', 'Enter')
    lines = terminal.wait('functions of thread sleeper')
    check(row(lines, 'clock_nanosleep') and not row(lines, 'busy_seventy'),
          f'{lines}')
    terminal.type('Escape')
    terminal.wait('functions of all threads')

    terminal.type('s')
    wait_rows(terminal, first_is('busy_seventy'), 'by self time')
    terminal.type('c')
    lines = terminal.wait('callers of busy_seventy in all threads')
    check([text.split()[0] for text, _ in rows(lines)] == ['work'],
          f'{lines}')
    terminal.type('Enter')
    lines = terminal.wait('callers of work')
    check([text.split()[0] for text, _ in rows(lines)] == ['main'],
          f'{lines}')
    terminal.type('Escape')
    terminal.wait('functions of all threads')

    terminal.type('?')
    terminal.wait('Esc, Backspace')
    terminal.type('x')
    wait_rows(terminal, first_is('busy_seventy'), 'the list again')
    terminal.type('q')
    terminal.wait_status()
    # The recording has ended, and the daemon goes on as before.
    ctl.wait_state(target.pid, 'profiling')
    profd.interrupt()


def test_pause(box):
    """Samples during a pause are not counted."""
    target = box.target(*WORKS)
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    terminal = Terminal(box)
    terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
    wait_rows(terminal, first_is('work'), 'its function')
    terminal.type('p')
    before = terminal.wait('PAUSED')
    looks = ctl.target(target.pid)['samples_taken']
    wait_for(lambda: ctl.target(target.pid)['samples_taken'] > looks + 250,
             'two seconds')
    check(rows(terminal.screen()) == rows(before), f'{before}')
    terminal.type('p')
    wait_rows(terminal, lambda at: seconds(at) > seconds(before),
              'it goes on')
    # The end of the target is shown, and the values stay.
    target.end()
    lines = terminal.wait('the process has ended')
    check(first_is('work')(lines), f'{lines}')
    terminal.type('q')
    terminal.wait_status()
    profd.interrupt()


def test_threads_that_have_ended(box):
    """The title has the number of those of the last second, and not of all that were seen."""
    code = ('import threading, time\n'
            'def work():\n'
            '    end = time.monotonic() + 0.05\n'
            '    while time.monotonic() < end: pass\n'
            'while True:\n'
            '    t = threading.Thread(target=work); t.start(); t.join()\n')
    target = box.start([sys.executable, '-c', code])
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    terminal = Terminal(box)
    terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
    lines = wait_rows(terminal, lambda at: seconds(at) >= 6, 'six seconds')
    # Some twenty a second.
    threads = int(re.search(r', (\d+) threads?:', lines[0])[1])
    check(threads < 60, lines[0])
    terminal.type('q')
    terminal.wait_status()
    profd.interrupt()


def test_all_targets(box):
    """All targets with their cost. Enter shows one target, Esc returns."""
    one, other = box.target('unw_o2', 'spin'), box.target('shares')
    profd, ctl = listening(box, [one, other])
    profd.wait_attached().wait_looks()
    terminal = Terminal(box)
    terminal.run(EXE, 'top', '--socket', ctl.path)

    def costs(lines):
        found = {int(line.split()[0]): line.split()[1:] for line in lines[3:]
                 if re.match(r' *\d+ ', line)}
        return {one.pid, other.pid} == set(found) and \
            all(float(cost[3]) > 0 and float(cost[5]) > 0
                for cost in found.values())
    lines = wait_rows(terminal, costs, 'what they cost')
    check(max(map(len, lines)) <= 80 and '2 targets' in lines[0], f'{lines}')
    # Both have the same name, so the lower pid is first.
    terminal.type('n')
    lines = terminal.wait('targets, by name')
    first, second = sorted([one, other], key=lambda t: t.pid)
    check(lines[3].split()[0] == str(first.pid), f'{lines}')
    terminal.type('Down', 'Enter')
    terminal.wait(f'process {second.pid} ')
    wait_rows(terminal, lambda at: rows(at), 'functions')
    terminal.type('Escape')
    terminal.wait('targets, by name')
    # The end of a target is shown, and the target is no longer in the list.
    profd.signal(signal.SIGINT)
    terminal.wait('sentry-profd has ended')
    terminal.type('q')
    terminal.wait_status()
    profd.finish()


def test_ready(box):
    """Two processes share a processor: the one that is shown is ready for half
    the time, and the columns of it appear beside those of waiting time."""
    target, other = box.target('unw_o2', 'spin'), box.target('unw_o2', 'spin')
    cpu = min(os.sched_getaffinity(0))
    for one in (target, other):
        os.sched_setaffinity(one.pid, {cpu})
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    terminal = Terminal(box)
    terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
    lines = wait_rows(terminal, lambda at: set(READY_HEADS) < set(heads(at)) and
                      first_is('leaf_spin')(at), 'columns of ready time')
    check(heads(lines) == ['SELF%', 'TOTAL%', 'READY%', 'WAIT%',
                           'SELF s', 'TOTAL s', 'READY s', 'WAIT s'], f'{lines}')
    check(re.search(r': [\d.]+ run, [\d.]+ ready, [\d.]+ wait$', lines[0].rstrip()),
          lines[0])
    check(max(map(len, lines)) <= 80, f'{lines}')
    (_, numbers), *_ = rows(lines, READY_HEADS)
    check(len(numbers) == 2, f'{lines}')
    terminal.type('r')
    lines = terminal.wait('by ready time of the last second')
    check(rows(lines, READY_HEADS)[0][1][1] ==
          max(n[1] for _, n in rows(lines, READY_HEADS)) > 0, f'{lines}')
    terminal.type('q')
    terminal.wait_status()
    profd.interrupt()


def test_one_that_is_no_target(box):
    """The daemon attaches to the process for as long as it is shown."""
    sleeper = box.target('unw_o2', 'nanosleep')
    target = box.target(*WORKS)
    profd, ctl = listening(box, [sleeper])
    profd.wait_attached()
    terminal = Terminal(box)
    terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
    wait_rows(terminal, first_is('work'), 'its function')
    check(harness.tracer(target.pid), 'it is traced')
    terminal.type('q')
    terminal.wait_status()
    wait_for(lambda: not harness.tracer(target.pid), 'it is let go')
    wait_for(lambda: ctl.target(target.pid) is None, 'it is none any more')
    profd.interrupt()


def test_without_a_daemon(box):
    """A daemon is started for top, as the caller, and leaves nothing behind.
    """
    runtime = box.make_dir('runtime')
    if os.geteuid() == 0:
        stranger.need_ptrace()
        os.chown(runtime, stranger.UID, stranger.UID)
    copies = stranger.copy(box, ('sentry-profctl', *stranger.EXECUTABLES,
                                 'targets/naps'))
    target = box.start([copies / WORKS[0], *WORKS[1:]], **stranger.options())
    target.wait_line('ready.*')
    terminal = Terminal(
        box, XDG_RUNTIME_DIR=str(runtime), SENTRY_DSN='http://k@127.0.0.1:9/1',
        SENTRY_PROFD_SOCKET=str(box.dir / 'none.sock'))
    command = [copies / 'sentry-profctl', 'top', target.pid]
    if os.geteuid() == 0:
        command = ['setpriv', '--reuid', stranger.UID, '--regid',
                   stranger.UID, '--clear-groups', *command]
    for number in None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        terminal.run(*command)
        wait_rows(terminal, first_is('work'), 'its function')
        own, = runtime.iterdir()
        check(own.stat().st_mode & 0o7777 == 0o700 and
              own.stat().st_uid == (stranger.UID if os.geteuid() == 0
                                     else os.geteuid()),
              f'{own.stat()}')
        written = [p for p in own.rglob('*') if p.is_file()]
        check([p.name for p in written] == ['socket.lock'], f'{written}')
        if number is None:
            terminal.type('q')
        else:
            os.kill(terminal.pid(), number)
        terminal.wait_status(0 if number in (None, signal.SIGINT)
                             else 128 + number)
        check(not list(runtime.iterdir()), f'{list(runtime.iterdir())}')
        check(not harness.tracer(target.pid), 'it is let go')
    # If top is killed, the directory stays, but no daemon.
    terminal.run(*command)
    wait_rows(terminal, first_is('work'), 'its function')
    os.kill(terminal.pid(), signal.SIGKILL)
    wait_for(lambda: not harness.tracer(target.pid), 'it is let go')


def test_names(box):
    """C++ names are short, unless --names full is given."""
    target = box.target('threads')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    terminal = Terminal(box, width=160)
    for options, wanted in ((), 'demo::SortJob::run(...)'), \
            (('--names', 'full'), 'demo::SortJob::run(unsigned long)'):
        terminal.run(EXE, 'top', '--socket', ctl.path, *options, target.pid)
        wait_rows(terminal, lambda at, name=wanted:
                  any(text.startswith(name + ' ') for text, _ in rows(at)), wanted)
        terminal.type('q')
        terminal.wait_status()
    profd.interrupt()


def test_hostile_names(box):
    """A target's name is only text."""
    name = 'a\x1bc\x9b\u202e\xe4'
    path = box.dir / name
    shutil.copy2(BUILD / 'targets/shares', path)
    target = box.start([path])
    target.wait_line('ready.*')
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    # With the columns of ready time there is little room for names.
    terminal = Terminal(box, width=120)
    terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
    lines = wait_rows(terminal, first_is('busy_seventy'), 'its functions')
    check('a\\x1bc\\x9b\\u{202e}\xe4' in lines[3], f'{lines[3]}')
    check('a\\x1bc' in lines[0], lines[0])
    terminal.type('q')
    terminal.wait_status()
    profd.interrupt()


def is_red_or_so(lines):
    """Returns true if a colour is set. Attributes such as bold are no colour.
    """
    return any(re.search(r'\x1b\[[\d;]*(?:3[0-7]|38;)[\d;]*m', line)
               for line in lines)


def test_the_terminal(box):
    """The terminal's size may change; not all terminals have colours."""
    target = box.target(*WORKS)
    profd, ctl = listening(box, [target])
    profd.wait_attached().wait_looks()
    for colours in True, False:
        terminal = Terminal(box, **({} if colours else {'NO_COLOR': '1'}))
        terminal.run(EXE, 'top', '--socket', ctl.path, target.pid)
        wait_rows(terminal, first_is('work'), 'its function')
        # The first row is selected, and no function above it runs.
        check(is_red_or_so(terminal.screen('-e')) == colours,
              f'{terminal.screen("-e")}')
        for height, width in (10, 40), (40, 120), (3, 20), (24, 80):
            terminal.tmux('resize-window', '-x', width, '-y', height)
            wait_rows(terminal, lambda at, n=height:
                      len(at) == n + 1 and at[0].startswith('process') and
                      at[n - 1], 'the keys in the last line')
        wait_rows(terminal, first_is('work'), 'its function')
        # ^Z and back.
        terminal.type('C-z')
        wait_for(lambda: terminal.settings() == terminal.before,
                 'the terminal as it was')
        terminal.type('fg', 'Enter')
        wait_rows(terminal, first_is('work'), 'its function')
        terminal.type('q')
        wait_for(lambda: terminal.settings() == terminal.before,
                 'the terminal as it was')
    # A terminal that ncurses does not know.
    terminal.run('env', 'TERM=none-such', EXE, 'top', '--socket', ctl.path,
                 target.pid)
    check('its TERM is unknown' in ''.join(terminal.wait_status(1)),
          'it says so')
    profd.interrupt()


def test_wrong_usage(box):
    target = box.target('unw_o2', 'nanosleep')
    profd, ctl = listening(box, [target])
    said = ctl.run('top', target.pid, status=2).stderr
    check('needs a terminal' in said and 'sentry-profctl record' in said,
          said)
    for words, why in ((['top', '1', '2'], 'one pid or name'),
                       (['top', ''], 'neither a pid'),
                       (['top', '--wrong'], 'not known'),
                       (['top', '--names', 'long'], 'not short or full')):
        said = ctl.run(*words, status=2).stderr
        check(why in said, said)
    terminal = Terminal(box)
    for words, why in ((['nobody'], 'no process belongs'),
                       ([profd.pid], 'itself')):
        terminal.run(EXE, 'top', '--socket', ctl.path, *words)
        check(why in ''.join(terminal.wait_status(1)), why)
    # If a socket is named, no daemon is started in its place.
    terminal.run(EXE, 'top', '--socket', box.dir / 'none', target.pid)
    check('does not run here' in ''.join(terminal.wait_status(1)), 'none')
    # The message of a started daemon that cannot run is shown.
    terminal.run('env', f'SENTRY_PROFD_SOCKET={box.dir / "none"}', EXE, 'top',
                 2**22 - 1)
    check('exited at its start' in ''.join(terminal.wait_status(1)), 'why')
    profd.interrupt()


if __name__ == '__main__':
    harness.main(globals())
