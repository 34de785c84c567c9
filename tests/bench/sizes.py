"""Measures the sizes of a minute's chunks: as the server gets them, compressed and not,
and by how much those in files are larger."""

import time
import zlib

import measure
import report

NAME = 'sizes'
SECONDS = 60
# As in lib/ship/compressor.h.
GZIP_LEVEL = 4

# {the scenario's name: (processes, what each does)}, as in bench.py.
TARGETS = {
    'busy-1': (1, {'busy': 1}),
    'busy-64': (1, {'busy': 64}),
    'waits-64': (1, {'tickers': 64}),
    'mixed': (1, {'busy': 2, 'sleepers': 1000}),
    'fleet': (100, {'sleepers': 18, 'tickers': 1}),
}
SMOKE_TARGETS = {'busy-1': (1, {'busy': 1})}


def packed(payload):
    deflate = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS + 16)
    return len(deflate.compress(payload) + deflate.flush())


def one(box, processes, options, seconds, **profd):
    """Returns the figures of one scenario, as sums over its processes."""
    target = measure.Target(box, processes, **options)
    run = box.profd(target.programs, '--release', 'bench', **profd)
    run.wait_attached()
    if seconds > 0:
        time.sleep(seconds)
    else:
        run.wait_looks()
    envelopes = run.interrupt().envelopes
    target.end()
    return {
        'chunks': len(envelopes),
        'samples': sum(len(e.chunk['profile']['samples']) for e in envelopes),
        'bytes': sum(len(e.for_server) for e in envelopes),
        'packed': sum(packed(e.for_server) for e in envelopes),
        'largest': max(len(e.for_server) for e in envelopes),
        'file': sum(len(e.payload) for e in envelopes),
        'packed_file': sum(packed(e.payload) for e in envelopes),
    }


def run(box, smoke=False, **profd):
    """Returns {scenario: its figures}."""
    return {name: one(box, *what, 0 if smoke else SECONDS, **profd)
            for name, what in (SMOKE_TARGETS if smoke else TARGETS).items()}


def wanted(_figures):
    """No requirements: sizes depend on the samples."""
    return []


def text(figures):
    rows = [[name, f'{f["chunks"]:,}', f'{f["samples"]:,}',
             f'{f["bytes"] / 1e6:.2f}', f'{f["largest"] / 1e6:.2f}',
             f'{f["packed"] / 1e3:,.0f}',
             f'{f["bytes"] / f["samples"]:.0f}',
             f'{f["packed"] / f["samples"]:.1f}',
             f'{100 * (f["file"] / f["bytes"] - 1):.1f} %',
             f'{100 * (f["packed_file"] / f["packed"] - 1):.1f} %']
            for name, f in figures.items()]
    return ("### Sizes of a minute's chunks (`T=sizes`)\n\n" +
            report.table(['scenario', 'chunks', 'samples', 'MB', 'largest, MB',
                          'compressed, KB', 'bytes per sample',
                          'compressed, bytes per sample', 'larger in a file by',
                          'compressed, larger in a file by'], rows))
