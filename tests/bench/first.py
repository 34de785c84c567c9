"""The first stack of a large program, up to its names (first.c)."""

import json
import shutil

import harness
import report

NAME = 'first'
# A compiler that is busy: it maps more code than most that serve do.
COMPILER = 'clang'
RATE_HZ = 101
TICKS = 100
# Half a minute's work here, most of it where libLLVM is deepest. It is past the
# parser, which is another library's, after so much of it.
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
    """The program's figures, or None without a compiler."""
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
    """As report.requirements."""
    if figures is None:
        return []
    ours = figures['ours']
    return [(f'first stack, {megabytes(figures["text_bytes"])} of text, to '
             'names', f'< {LIMIT_MS} ms', f'{ours["cpu_ms"]:,.0f} ms',
             ours['cpu_ms'] < LIMIT_MS)]


def text(figures):
    head = f'### The first stack of a large program (`T={NAME}`)\n\n'
    if figures is None:
        return head + f'There is no {COMPILER} here.\n'
    rows = [[what, f'{figures[by]["cpu_ms"]:,.1f}',
             f'{figures[by]["cpu_ms"] / figures["ours"]["cpu_ms"]:.2f}',
             f'{figures[by]["wall_ms"]:,.1f}', str(figures[by]['named'])]
            for by, what in BY]
    return (head + f'{figures["frames"]} frames; '
            f'{megabytes(figures["text_bytes"])} of text are mapped, and the '
            'files that the frames lie in are '
            f'{megabytes(figures["image_bytes"])} in memory.\n\n' +
            report.table(['', 'CPU, ms', 'of ours', 'by the clock, ms',
                          'frames with a name'], rows))
