"""Computes the daemon's sampling decision independently: a session is sampled
if SipHash-2-4 of pid and start time, with the boot id as key, as a share of
2^64, is below the rate.
"""

import pathlib
import struct

from harness import proc_text

MASK = 2 ** 64 - 1


def rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def rounds(v, n):
    a, b, c, d = v
    for _ in range(n):
        a, c = (a + b) & MASK, (c + d) & MASK
        b, d = rotate(b, 13) ^ a, rotate(d, 16) ^ c
        a, c = (rotate(a, 32) + d) & MASK, (c + b) & MASK
        b, d = rotate(b, 17) ^ c, rotate(d, 21) ^ a
        c = rotate(c, 32)
    return a, b, c, d


def siphash(key, data):
    """SipHash-2-4 of Aumasson and Bernstein, "SipHash: a fast short-input
    PRF", 2012."""
    k = struct.unpack('<2Q', key) * 2
    start = struct.unpack('>4Q', b'somepseudorandomlygeneratedbytes')
    v = tuple(a ^ b for a, b in zip(k, start))
    data += bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for word, in struct.iter_unpack('<Q', data):
        a, b, c, d = rounds((*v[:3], v[3] ^ word), 2)
        v = a ^ word, b, c, d
    a, b, c, d = rounds((v[0], v[1], v[2] ^ 0xff, v[3]), 4)
    return a ^ b ^ c ^ d


def start_ticks(pid):
    """Returns the start time of a process, from /proc/PID/stat; None: it is
    gone."""
    fields = proc_text(pid, 'stat').rpartition(')')[2].split()
    return int(fields[19]) if fields else None


def is_sampled(pid, rate):
    """Returns true if this process is sampled at this rate, for its whole
    life."""
    boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text()
    key = bytes.fromhex(boot.strip().replace('-', ''))
    digest = siphash(key, struct.pack('<iQ', pid, start_ticks(pid) or 0))
    return (digest >> 11) * 2.0 ** -53 < rate
