"""Rules that a chunk must follow so that Sentry's server accepts and shows it.

An independent checker: it reads an envelope as the server would, shares no
code with the daemon, and describes each violation in words. problems() checks
one envelope, stream_problems() the chunks of one process in their order.

The rules are those of docs/FORMATS.md. Where the server is more tolerant than
the specification, the rules of the specification are checked.
test_chunk_rules.py shows that each rule can fail.
"""

import json
import math
import re

from bars import Bar, bars, by_thread, thread_ids, thread_seconds
from chunk_shape import chunk_shape_problems, envelope_problems

__all__ = ['Bar', 'bars', 'load', 'problems', 'stream_problems', 'thread_ids',
           'thread_seconds', 'time_problems']

LIBRARY = re.compile('(/usr)?/lib(32|64|x32|exec)?/')
BY_OFFSET = re.compile(r'(.+)\+(0x[0-9a-f]+)', re.S)

DURATION_MAX_S = 66
# The rate in the specification.
RATE_HZ = 101
MEASUREMENTS = {'cpu_usage': 'percent', 'memory_footprint': 'byte',
                'memory_native_footprint': 'byte'}
# Times are rounded to microseconds.
MEASURE_S = 1 - 1e-5


def problems(envelope, layout=None, sent=False, platform='rust',
             rate_hz=RATE_HZ, by_function=False):
    """Returns the violations of an envelope (harness.Envelope), as texts.

    layout: layout.Layout of the target, to check what the chunk says about its
    memory. sent: the envelope was sent to a server, so it must have a sent_at;
    otherwise it must have none. by_function: a frame has the address of its
    function, not its own.
    """
    found = envelope_problems(envelope, sent)
    chunk = envelope.chunk
    shape = chunk_shape_problems(chunk, sent)
    # The checks below rely on the types.
    if shape:
        return found + shape
    if envelope.item.get('platform') != chunk['platform']:
        found.append("the item's platform is not the chunk's")
    if chunk['platform'] != platform:
        found.append(f'platform is {chunk["platform"]}, not {platform}')
    found += image_problems(chunk['debug_meta']['images'])
    found += index_problems(chunk['profile'])
    if found:
        return found
    found += time_problems(chunk['profile'], rate_hz)
    found += thread_problems(chunk['profile'], by_function)
    found += measure_problems(chunk)
    found += waste_problems(chunk)
    found += frame_problems(chunk)
    if layout:
        found += layout_problems(chunk, layout, by_function)
        if not sent:
            found += code_id_problems(chunk, layout)
    return found


def image_problems(images):
    """Images must not overlap, because the server uses the last image that
    starts before an address."""
    found = []
    by_addr = sorted(images, key=lambda i: int(i['image_addr'], 16))
    for a, b in zip(by_addr, by_addr[1:]):
        if int(a['image_addr'], 16) + a['image_size'] > \
                int(b['image_addr'], 16):
            found.append(f'{a["code_file"]} and {b["code_file"]} overlap')
    return found


def index_problems(profile):
    """Checks indices also in stacks that no sample uses, because the server
    checks all."""
    found = []
    n_frames, n_stacks = len(profile['frames']), len(profile['stacks'])
    if any(not 0 <= f < n_frames for s in profile['stacks'] for f in s):
        found.append('a stack has a frame that is not there')
    if any(s['stack_id'] >= n_stacks for s in profile['samples']):
        found.append('a sample has a stack that is not there')
    return found


def time_problems(profile, rate_hz):
    found = []
    times = [s['timestamp'] for s in profile['samples']]
    if max(times) - min(times) > DURATION_MAX_S:
        found.append(f'the chunk is {max(times) - min(times):.1f} s long')
    if times != sorted(times):
        found.append('samples are not in the order of time')
    for tid, samples in by_thread(profile).items():
        if any(a['timestamp'] >= b['timestamp']
               for a, b in zip(samples, samples[1:])):
            found.append(f'thread {tid} has two samples at a time')
    # All threads have the same timestamp at a tick, so there are at most as
    # many timestamps as ticks. A tick may be late by less than a period, and
    # the last timestamp is that of the end, which may follow at once.
    period = 1 / rate_hz
    latest = -math.inf
    for i, time in enumerate(sorted(set(times))):
        late = time - i * period
        if latest - late > 2 * period + 1e-5:
            found.append(f'more timestamps than ticks, at {time:.6f}')
            break
        latest = max(latest, late)
    return found


def thread_problems(profile, by_function):
    found = []
    threads = by_thread(profile)
    stacks = profile['stacks']
    times = sorted({s['timestamp'] for s in profile['samples']})
    tick = {time: n for n, time in enumerate(times)}
    end = times[-1]
    for tid, samples in threads.items():
        # The server drops all samples of a thread that has fewer.
        if sum(bool(stacks[s['stack_id']]) for s in samples) < 2:
            found.append(f'thread {tid} has not two samples with a stack')
        # A running thread has a sample at each tick, and a waiting one has two
        # for each wait. So one sample between two others of the same stack and
        # state, ticks away, is redundant. (The copy at the end of the chunk is
        # one more.)
        of = [((s['stack_id'], s.get('state')), tick[s['timestamp']])
              for s in samples if s['timestamp'] < end]
        if not by_function and any(
                a[0] == b[0] == c[0] and a[1] + 1 < b[1] < c[1] - 1
                for a, b, c in zip(of, of[1:], of[2:])):
            found.append(f'thread {tid} repeats a stack without need')
        if tid not in profile['thread_metadata']:
            found.append(f'thread {tid} is not in thread_metadata')
    for tid in profile['thread_metadata'].keys() - threads.keys():
        found.append(f'thread_metadata has thread {tid} without samples')
    return found


def measure_problems(chunk):
    """Checks the three measurements: they cover the time of the samples, with
    a value a second."""
    found = []
    measurements = chunk.get('measurements')
    if measurements is None:
        return []
    if {n: m['unit'] for n, m in measurements.items()} != MEASUREMENTS:
        return [f'measurements are {sorted(measurements)}']
    times = [[v['timestamp'] for v in m['values']]
             for m in measurements.values()]
    if any(t != times[0] for t in times) or not times[0]:
        found.append('the measurements are not of the same times')
    if any(b - a < MEASURE_S for t in times for a, b in zip(t, t[1:])):
        found.append('measurements more than once a second')
    samples = [s['timestamp'] for s in chunk['profile']['samples']]
    if any(not min(samples) <= t <= max(samples) for t in times[0]):
        found.append("a measurement is not of the samples' time")
    return found


def inlined_frames(frames, stacks):
    """Returns {frame index} of inlined functions: their caller in a stack has the same
    address and another name. (In a recursion the frame itself is the caller.)"""
    return {inner for s in stacks for inner, f in zip(s, s[1:])
            if inner != f and frames[inner]['instruction_addr'] ==
            frames[f]['instruction_addr'] and
            frames[inner].get('function') != frames[f].get('function')}


def waste_problems(chunk):
    """Checks that all parts are unique and used."""
    found = []
    profile = chunk['profile']
    frames, stacks = profile['frames'], profile['stacks']
    if {s['stack_id'] for s in profile['samples']} != set(range(len(stacks))):
        found.append('a stack that no sample uses')
    if {f for s in stacks for f in s} != set(range(len(frames))):
        found.append('a frame that no stack uses')
    if len({tuple(s) for s in stacks}) != len(stacks):
        found.append('two equal stacks')
    # The same address may be two frames: a leaf executes it, and a caller's
    # call ends just before it. Functions that were inlined there are further
    # frames with this address.
    leaves = {s[0] for s in stacks if s}
    callers = {f for s in stacks for f in s[1:]}
    inlined = inlined_frames(frames, stacks)
    for what, used in (('leaf', leaves - inlined),
                       ('caller', callers - inlined)):
        if len({frames[f]['instruction_addr'] for f in used}) != len(used):
            found.append(f'two {what} frames of one address')
    for f in inlined:
        if 'function' not in frames[f]:
            found.append(f'an inlined frame without a name: {frames[f]}')
    starts = [(int(i['image_addr'], 16), i)
              for i in chunk['debug_meta']['images']]
    # A thread's sample may take the place of another one of the same tick, whose image stays.
    without = [image['code_file'] for start, image in starts
               if not any(start <= int(f['instruction_addr'], 16) <= start + image['image_size']
                          for f in frames)]
    if len(without) > 1 or without and len(starts) == 1:
        found.append(f'no frame is in {without}')
    return found


def frame_problems(chunk):
    found = []
    frames = chunk['profile']['frames']
    images = chunk['debug_meta']['images']
    for stack in chunk['profile']['stacks']:
        # Otherwise the server cuts off the two outermost frames.
        if len(stack) > 1 and 'function' not in frames[stack[-2]]:
            found.append('the frame next to a root has no name')
            break
    for f in frames:
        address = int(f['instruction_addr'], 16)
        package = f.get('package')
        inside = [i for i in images if int(i['image_addr'], 16) <= address <=
                  int(i['image_addr'], 16) + i['image_size']]
        if inside and package not in {i['code_file'] for i in inside}:
            found.append(f'{address:#x} lies in {inside[0]["code_file"]}, '
                         f'not in {package}')
        # Code in no file, and code of the system, is not in_app. (The layout
        # knows the main executable.) Code that the program made itself is
        # in_app, and known by its name.
        made = package is None and not inside and \
            not BY_OFFSET.fullmatch(f.get('function', '?+0x0'))
        if f['in_app'] and not made and (package or '?')[0] != '/':
            found.append(f'in_app without a file: {f}')
    return found


def uses_of_frames(profile, layout):
    """Returns three sets of frame indices: leaves, callers, and those callers whose address
    is certainly a return address.

    These are no return addresses: the pc that a signal interrupted, and that of the
    trampoline before it. The caller of libgcc's exception unwinder may be none, since the
    unwinder enters a handler by returning to it, and has the handler's registers shortly
    before.
    """
    frames = profile['frames']
    leaves, callers, returns = set(), set(), set()
    trampolines = {i for i, f in enumerate(frames) if layout.is_trampoline(
        int(f['instruction_addr'], 16))}
    for stack in profile['stacks']:
        leaves.update(stack[:1])
        callers.update(stack[1:])
        for inner, f in zip(stack, stack[1:]):
            if '/libgcc_s.so' in frames[inner].get('package', ''):
                break
            if not trampolines & {inner, f}:
                returns.add(f)
    return leaves, callers, returns


def layout_problems(chunk, layout, by_function):
    """Checks what the chunk says about the target's memory."""
    found = []
    for image in chunk['debug_meta']['images']:
        said = (int(image['image_addr'], 16), int(image['image_vmaddr'], 16),
                image['image_size'], image['debug_id'])
        path = image['code_file']
        ought = {m.image for m in layout.mappings if m.path == path}
        if said not in ought:
            found.append(f'image {path}: {said} is not in {ought}')
    frames = chunk['profile']['frames']
    leaves, callers, returns = uses_of_frames(chunk['profile'],
                                               layout)
    near_root = {f for s in chunk['profile']['stacks'] for f in s[-2:]}
    for i in leaves:
        found += place_problems(frames[i], 0, layout, i in near_root)
    for i in callers:
        found += place_problems(frames[i], 1, layout, i in near_root)
    if by_function:
        return found + start_problems(frames, layout)
    for i in returns:
        # The addresses are raw; the server subtracts one.
        if layout.follows_call(int(frames[i]['instruction_addr'], 16)) is \
                False:
            found.append(f'no call stands before {frames[i]}')
    return found


def code_id_problems(chunk, layout):
    """Checks that in a file each image has its whole build-id, if it has one."""
    found = []
    for image in chunk['debug_meta']['images']:
        ought = {m.elf.build_id.hex() for m in layout.mappings
                 if m.path == image['code_file']}
        if image.get('code_id', '') not in ought:
            found.append(f'code_id {image.get("code_id")} is not in {ought}')
    return found


def start_problems(frames, layout):
    """Each frame has the address just after its function's start, and each
    function has one frame."""
    found = []
    functions = [(f.get('package'), f.get('function')) for f in frames]
    for f in frames:
        address = int(f['instruction_addr'], 16)
        m = layout.at(address - 1)
        if m is None or not f.get('function'):
            continue
        vaddr = address - 1 - m.bias
        stub = m.elf.stub_at(vaddr)
        if vaddr not in m.elf.symbol_starts and m.elf.fde_start(vaddr) != vaddr and \
                (stub is None or stub[0] != vaddr):
            found.append(f'no function starts before {f}')
    # Several functions of a file may have the same name.
    starts = {(f.get('package'), f.get('function'), f['instruction_addr'])
              for f in frames if f.get('function')}
    if len(starts) != sum(bool(name) for _, name in functions):
        found.append('two frames of one function')
    return found


def place_problems(frame, back, layout, near_root):
    """Checks where a frame is. back: how far before its address it is looked
    up. near_root: it is the root of a stack, or next to it."""
    found = []
    address = int(frame['instruction_addr'], 16)
    package, name = frame.get('package'), frame.get('function')
    m = layout.at(address - back)
    if m is None:
        return [f'{frame} lies in no file'] if package else []
    if package != m.path:
        return [f'{frame} lies in {m.path}']
    sized, unsized = m.elf.names_at(address - back - m.bias)
    by_offset = BY_OFFSET.fullmatch(name or '')
    ours = m.path == layout.exe or \
        m.path[0] == '/' and not LIBRARY.match(m.path)
    start = m.elf.fde_start(address - back - m.bias)
    if name is None:
        if sized or start is not None:
            found.append(f'{frame} is in {sized or hex(start)}')
    elif by_offset and name not in sized | unsized:
        # A frame without a symbol is named by the start of its function. If
        # the start is not known, only a frame that must have a name has one.
        base = m.path.rpartition('/')[2]
        ours = ours and not near_root
        named = address if start is None else start + m.bias
        if sized or by_offset[1] != base or (start is None and not near_root) or \
                int(by_offset[2], 16) != named - m.image[0]:
            found.append(f'{frame} is {base}+{named - m.image[0]:#x}')
    elif name not in (sized or unsized):
        found.append(f'{frame} is in {sized or unsized}')
    # The file of a static executable contains libraries, too: test_in_app.py.
    if frame['in_app'] != ours and (
            by_offset or m.path != layout.exe or m.elf.has_interpreter):
        found.append(f'in_app is not {ours}: {frame}')
    return found


def stream_problems(chunks):
    """Returns the violations in the chunks of one process, in the order in
    which they were made."""
    found = []
    if len({c['profiler_id'] for c in chunks}) != 1:
        found.append('not one profiler_id')
    if len({c['chunk_id'] for c in chunks}) != len(chunks):
        found.append('a chunk_id twice')
    for a, b in zip(chunks, chunks[1:]):
        end = max(s['timestamp'] for s in a['profile']['samples'])
        start = min(s['timestamp'] for s in b['profile']['samples'])
        # Chunks join without a hole: a chunk ends where the next one starts,
        # unless there is a gap between them.
        if start != end:
            found.append(f'{start - end:+.6f} s between two chunks')
        before, after = by_thread(a['profile']), by_thread(b['profile'])
        for tid in before.keys() & after.keys():
            # An empty stack means that the thread's state is unknown.
            stack = a['profile']['stacks'][before[tid][-1]['stack_id']]
            if stack and before[tid][-1]['timestamp'] != end:
                found.append(f'thread {tid} ends before its chunk')
            if stack and after[tid][0]['timestamp'] != start:
                found.append(f'thread {tid} starts after its chunk')
    return found


def load(payload):
    """Parses JSON as the server does: NaN and Infinity are errors."""
    def refuse(text):
        raise ValueError(f'{text} is not JSON')
    return json.loads(payload, parse_constant=refuse)
