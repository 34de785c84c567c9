"""Measures the first stack of a large program, names included (first.c)."""

import json
import shutil

import harness
import report

NAME = 'first'
# A busy compiler: it maps more code than most servers.
COMPILER = 'clang'
RATE_HZ = 101
TICKS = 100
# Half a minute of work, most of it deep in libLLVM. After PARSED_CPU_S the parser, which
# is in another library, has finished.
FUNCTIONS = 8000
PARSED_CPU_S = 4
LIMIT_MS = 300

FUNCTION = '''int f{0}(int *a, int n)
{{
	int s = {0};
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			s += a[i] * a[j] ^ (s >> {1});
	return s;
}}
'''

BY = [
    ('ours', 'sentry-profd'),
    ('libdwfl', 'libdwfl, from the recorded stack'),
    ('libunwind', 'libunwind, from the recorded stack'),
]


def compiler(box):
    source = box.make_dir('source') / 'functions.c'
    source.write_text(''.join(FUNCTION.format(i, i % 7)
                              for i in range(FUNCTIONS)))
    program = box.start([COMPILER, '-cc1', '-O2', '-emit-obj', '-o',
                         '/dev/null', source])
    harness.wait_work(program.pid, PARSED_CPU_S)
    return program


def small(box):
    program = box.start([harness.BUILD / 'bench/target', 'busy=2'])
    program.wait_line(r'ready \d+')
    return program


def run(box, smoke=False):
    """Returns the program's figures; None if there is no compiler."""
    if not smoke and shutil.which(COMPILER) is None:
        return None
    target = small(box) if smoke else compiler(box)
    program = box.start([harness.BUILD / 'bench/first', target.pid, RATE_HZ,
                         5 if smoke else TICKS])
    program.wait()
    return json.loads(program.stdout)


def megabytes(n):
    return f'{n / 1e6:,.0f} MB'


def wanted(figures):
    """Returns requirements as report.requirements()."""
    if figures is None:
        return []
    ours = figures['ours']
    return [(f'first stack, {megabytes(figures["text_bytes"])} of text, to '
             'names', f'< {LIMIT_MS} ms', f'{ours["cpu_ms"]:,.0f} ms',
             ours['cpu_ms'] < LIMIT_MS)]


def text(figures):
    head = f'### The first stack of a large program (`T={NAME}`)\n\n'
    if figures is None:
        return head + f'Not measured: {COMPILER} is not installed.\n'
    rows = [[what, f'{figures[by]["cpu_ms"]:,.1f}',
             f'{figures[by]["cpu_ms"] / figures["ours"]["cpu_ms"]:.2f}',
             f'{figures[by]["wall_ms"]:,.1f}', str(figures[by]['named'])]
            for by, what in BY]
    return (head + f'{figures["frames"]} frames; '
            f'{megabytes(figures["text_bytes"])} of code are mapped. The files of '
            'the frames have '
            f'{megabytes(figures["image_bytes"])} in memory. libunwind names an '
            'address by the nearest symbol below it, even if that function ends '
            'before the address; the others do not.\n\n' +
            report.table(['unwinder', 'CPU, ms', 'times sentry-profd',
                          'elapsed, ms', 'frames with a name'], rows))
