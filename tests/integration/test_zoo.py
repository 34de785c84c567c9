#!/usr/bin/python3
"""Programs of many kinds that know their stacks, frame by frame.

The zoo_* targets print the return addresses of their functions (zoo.h). Each
is unwound twice: with all registers at a stop, and by a daemon while it waits,
from the stack pointer and the pc only if these are sufficient.
"""

import concurrent.futures
import subprocess

import harness
from harness import BUILD, Skip, check
from test_control import listening
from test_profctl import parse, run

MODES = ('frames', 'tail', 'noreturn', 'deep', 'split', 'callback', 'exiting',
         'signal_fault', 'signal_nested', 'signal_first', 'context', 'jumped',
         'threads')

# The programs that are built with ZOO_MORE, whose frames are guessed.
MORE = {'alternate': 0, 'alternate_nested': 0, 'alternate_within': 0,
        'alternate_thread': 0, 'coroutine': 0, 'ending_coroutine': 0,
        'realigned': 0, 'frame_pointer': 1, 'no_frame_pointer': 1,
        'frame_varies': 0, 'way_out': 1, 'never_back': 1, 'go_mcall': 0,
        'go_systemstack': 0, 'go_nanotime': 0, 'cloned': 0}

THROW = ('destructor', 'handler', 'again', 'uncaught')

# Stacks that are wrong if only stack pointer and pc are known, and functions
# keep a frame pointer: it may be that of an outer frame.
UNSURE = (('zoo_more_fp', 'alternate_within'), ('zoo_more_fp', 'frame_varies'))


def programs(musl):
    found = sorted(p.name for p in (BUILD / 'targets').glob('zoo_*')
                   if '.' not in p.name and p.name != 'zoo_throw')
    check(len(found) > 15, f'{found}')
    return [name for name in found if ('musl' in name) == musl]


def start(box, program, mode):
    """Starts a program; returns it, {tid: addresses, innermost first}, and the
    correct ends."""
    target = box.start([BUILD / 'targets' / program, mode],
                       stdin=subprocess.PIPE)
    target.wait_line('ready .*')
    stacks, ends = {}, ['root']
    for line in target.stdout.splitlines():
        word, *numbers = line.split()
        if word == 'stack':
            stacks[int(numbers[0])] = [int(n, 16) for n in numbers[1:]]
        if word == 'end':
            ends = numbers
    for tid in stacks:
        harness.wait_for(lambda t=tid: harness.in_call(t, 'read'), 'it waits')
    return target, stacks, ends


def of_program(thread, program, expected):
    """Returns its frames below the waiting one, except those that the program
    cannot know: the callers of its functions that libc calls back, and the
    start of it all."""
    modules = [f.module for f in thread.frames]
    return [f.addr for i, f in enumerate(thread.frames)
            if modules[i] == program and f.name != '_start' and
            not f.guessed and not (f.name or '').startswith('zoo_') and
            (i > 0 and modules[i - 1] == program or f.addr in expected)][1:]


def problems(thread, program, expected, ends=None, n_guessed=None):
    """Returns the differences. ends, n_guessed: known with --oracle only."""
    addrs = [f.addr for f in thread.frames]
    rest = iter(addrs)
    if not all(a in rest for a in expected):
        yield f'not {[hex(a) for a in expected]}'
    if ends is not None and 'static' not in program:
        own = of_program(thread, program, expected)
        if own != [a for a in expected if a in own]:
            yield f'of its own {[hex(a) for a in own]}'
    if ends is not None and thread.end not in ends:
        yield f'ends with {thread.end}'
    guessed = [f.name for f in thread.frames if f.guessed]
    if n_guessed is not None and len(guessed) != n_guessed:
        yield f'guessed {guessed}'


def check_stacks(text, case, **more):
    program, mode, stacks = case
    threads = parse(text)
    for tid, expected in stacks.items():
        check(tid in threads, f'{program} {mode}: no thread {tid}\n{text}')
        found = list(problems(threads[tid], program, expected, **more))
        check(found == [], f'{program} {mode} {more}: {found}\n{text}')
    check(mode != 'threads' or len(threads) == 5, f'{threads}')


def look(box, cases, guessed=0):
    """Unwinds cases of programs and modes, all by one daemon at once."""
    targets = {}
    for program, mode in cases:
        target, stacks, ends = start(box, program, mode)
        # A difference to the oracle (3) does not matter here: see
        # tests/oracle.
        done = run('stack', '--oracle=dwfl', target.pid, status=(0, 3))
        check_stacks(done.stdout, (program, mode, stacks), ends=ends,
                     n_guessed=guessed)
        targets[target] = program, mode, stacks
    targets = {t: case for t, case in targets.items()
               if case[:2] not in UNSURE}
    profd, ctl = listening(box, list(targets), '--max-frames', '4096')
    profd.wait_attached()
    with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
        found = pool.map(lambda t: ctl.run('stack', t.pid).stdout, targets)
        for text, case in zip(found, targets.values(), strict=True):
            check_stacks(text, case)
    profd.interrupt()
    for target in targets:
        target.end()


def make_test(mode):
    def test(box):
        # The function that starts a context is taken for the root.
        look(box, [(program, mode) for program in programs(musl=False)],
             guessed=int(mode == 'context'))
    return test


for mode_name in MODES:
    globals()[f'test_{mode_name}'] = make_test(mode_name)


def test_musl(box):
    """musl's code has no CFI. The callers are found from the code, which the
    output states: through musl to the program, and to the caller of main."""
    if not programs(musl=True):
        raise Skip('no musl-gcc for this processor')
    look(box, [(program, mode) for program in programs(musl=True)
               for mode in MODES if mode != 'context'], guessed=None)


def test_more(box):
    if not (BUILD / 'targets/zoo_more').exists():
        raise Skip('machine code of x86_64')
    for mode, guessed in MORE.items():
        look(box, [(program, mode) for program in
                   ('zoo_more', 'zoo_more_fp', 'zoo_more_clang')], guessed)


def test_exceptions(box):
    look(box, [('zoo_throw', mode) for mode in THROW])


def test_10000_levels(box):
    """More frames than the limit: the innermost 4096, and the reason for the
    end."""
    target, stacks, _ = start(box, 'zoo_o2', 'deepest')
    done = run('stack', '--oracle=dwfl', target.pid, status=(0, 3))
    thread, = parse(done.stdout).values()
    expected, = stacks.values()
    check(thread.end == 'max_frames' and len(thread.frames) == 4096,
          f'{thread.end} {len(thread.frames)}')
    check([f.addr for f in thread.frames[2:]] == expected[:4094], 'frames')


if __name__ == '__main__':
    harness.main(globals())
