"""What a chunk has to be like so that Sentry's server takes it and shows it.

An independent checker: it reads an envelope as the server would, knows nothing
of the code that made it, and says in words what is wrong. problems() looks at
one envelope, stream_problems() at the chunks of one process in their order.
The rules are those of docs/FORMATS.md; where the server is more tolerant than
the specification, the specification's are tested.

test_chunk_rules.py shows that each rule can fail.
"""

import collections
import json
import math
import re

HEX_ID = re.compile('[0-9a-f]{32}')
# Random UUIDs (version 4), without dashes.
UUID4 = re.compile('[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}')
DEBUG_ID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
ADDRESS = re.compile('0x(0|[1-9a-f][0-9a-f]{0,15})')
SEMVER = re.compile(r'(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)'
                    r'(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?')
RFC3339 = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z')
LIBRARY = re.compile('(/usr)?/lib(32|64|x32|exec)?/')
BY_OFFSET = re.compile(r'(.+)\+(0x[0-9a-f]+)', re.S)

PAYLOAD_MAX = 50 * 1000 * 1000
DURATION_MAX_S = 66
# The specification's rate.
RATE_HZ = 101
UNITS = {'nanosecond', 'ns', 'hertz', 'hz', 'byte', 'percent'}

# What the server keeps. It drops other fields without a word, so whoever sends
# one is mistaken. A frame's own "platform" would switch symbolication off for
# it: it is not to be sent.
CHUNK_FIELDS = {'version', 'profiler_id', 'chunk_id', 'platform', 'release',
                'environment', 'client_sdk', 'debug_meta', 'measurements',
                'profile'}
CHUNK_REQUIRED = CHUNK_FIELDS - {'measurements', 'environment'}
IMAGE_FIELDS = {'type', 'code_file', 'debug_id', 'image_addr', 'image_vmaddr',
                'image_size'}
PROFILE_FIELDS = {'frames', 'stacks', 'samples', 'thread_metadata'}
FRAME_FIELDS = {'instruction_addr', 'function', 'package', 'module', 'in_app',
                'filename', 'abs_path', 'lineno', 'colno'}
SAMPLE_FIELDS = {'timestamp', 'thread_id', 'stack_id'}
THREAD_FIELDS = {'name', 'priority'}


def problems(envelope, layout=None, sent=False, platform='rust',
             rate_hz=RATE_HZ):
    """What is wrong with an envelope (harness.Envelope), as texts.

    layout: layout.Layout of the target, for what must be true of its memory.
    sent: it went to a server (it has a sent_at then, and else has none).
    """
    found = envelope_problems(envelope, sent)
    chunk = envelope.chunk
    shape = chunk_shape_problems(chunk)
    # What follows takes types for granted.
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
    found += thread_problems(chunk['profile'])
    found += waste_problems(chunk)
    found += frame_problems(chunk)
    if layout:
        found += layout_problems(chunk, layout)
    return found


def envelope_problems(envelope, sent):
    found = []
    header, item = envelope.header, envelope.item
    if not HEX_ID.fullmatch(str(header.get('event_id'))):
        found.append('event_id is not 32 hex digits')
    # It says when the request was made. A stored envelope may wait for hours.
    if sent and not RFC3339.fullmatch(str(header.get('sent_at'))):
        found.append('sent_at is not RFC 3339 in UTC')
    if not sent and 'sent_at' in header:
        found.append('sent_at in an envelope that was not sent')
    if [i[0].get('type') for i in envelope.items].count('profile_chunk') != 1:
        found.append('not exactly one profile_chunk')
        return found
    # Rate limits are told by platform: the header must have it.
    if set(item) != {'type', 'platform', 'length', 'content_type'}:
        found.append(f'item header: {sorted(item)}')
    if item.get('content_type') != 'application/json':
        found.append('content_type is not application/json')
    if len(envelope.payload) > PAYLOAD_MAX:
        found.append('the payload is too large')
    if b'\n' in envelope.payload:
        found.append('the payload is more than one line')
    if header.get('sdk') != envelope.chunk.get('client_sdk'):
        found.append('sdk and client_sdk differ')
    return found


def fields_problems(value, what, allowed, required):
    if not isinstance(value, dict):
        return [f'{what} is no object']
    found = [f'{what} has an unknown field {k}'
             for k in sorted(set(value) - allowed)]
    found += [f'{what} has no {k}' for k in sorted(required - set(value))]
    # The server takes an absent field, but not null, for most of them.
    found += [f'{what}.{k} is null' for k in value if value[k] is None]
    return found


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value):
    return isinstance(value, str) and value != ''


def first(found):
    """Of the same fault in thousands of samples one is enough."""
    return found[:1]


def chunk_shape_problems(chunk):
    found = fields_problems(chunk, 'chunk', CHUNK_FIELDS, CHUNK_REQUIRED)
    if found:
        return found
    if chunk['version'] != '2':
        found.append('version is not the string "2"')
    for name in ('profiler_id', 'chunk_id'):
        if not UUID4.fullmatch(str(chunk[name])):
            found.append(f'{name} is not 32 hex digits of a random UUID')
    if chunk['profiler_id'] == chunk['chunk_id']:
        found.append('profiler_id and chunk_id are the same')
    for name in ('platform', 'release', 'environment'):
        if not is_text(chunk.get(name, 'production')):
            found.append(f'{name} is no text')
    sdk = chunk['client_sdk']
    if not isinstance(sdk, dict) or set(sdk) != {'name', 'version'} or \
            sdk['name'] != 'sentry.native.profd' or \
            not SEMVER.fullmatch(str(sdk['version'])):
        found.append('client_sdk is not the name and a bare version')
    found += measurement_problems(chunk.get('measurements', {}))
    meta = chunk['debug_meta']
    if not isinstance(meta, dict) or set(meta) != {'images'} or \
            not isinstance(meta['images'], list):
        found.append('debug_meta is not a list of images')
    else:
        for image in meta['images']:
            found += first(image_shape_problems(image))
    return found + profile_shape_problems(chunk['profile'])


def measurement_problems(measurements):
    found = []
    if not isinstance(measurements, dict):
        return ['measurements is no object']
    for name, m in measurements.items():
        if m.get('unit') not in UNITS:
            found.append(f'measurement {name}: unit {m.get("unit")}')
        for v in m.get('values', [None]):
            if not isinstance(v, dict) or set(v) != {'timestamp', 'value'}:
                found.append(f'measurement {name}: not timestamp and value')
    return found


def image_shape_problems(image):
    found = fields_problems(image, 'an image', IMAGE_FIELDS, IMAGE_FIELDS)
    if found:
        return found
    # Not "elf": the server's profiles do not know that.
    if image['type'] != 'symbolic':
        found.append(f'an image of type {image["type"]}')
    if not is_text(image['code_file']):
        found.append('an image without code_file')
    # A whole build-id parses there too, as another file's id.
    if not DEBUG_ID.fullmatch(str(image['debug_id'])):
        found.append(f'debug_id {image["debug_id"]} is no UUID')
    for name in ('image_addr', 'image_vmaddr'):
        if not isinstance(image[name], str) or \
                not ADDRESS.fullmatch(image[name]):
            found.append(f'{name} is not a string 0x...')
    if not is_int(image['image_size']) or image['image_size'] <= 0:
        found.append('image_size is not a positive number')
    return found


def profile_shape_problems(profile):
    found = fields_problems(profile, 'profile', PROFILE_FIELDS,
                            PROFILE_FIELDS)
    if found:
        return found
    for name in ('frames', 'stacks', 'samples'):
        if not isinstance(profile[name], list) or not profile[name]:
            return [f'{name} is no list, or empty']
    if not isinstance(profile['thread_metadata'], dict):
        return ['thread_metadata is no object']
    found += first([p for f in profile['frames']
                    for p in frame_shape_problems(f)])
    found += first([f'stack {i} is no list of numbers'
                    for i, s in enumerate(profile['stacks'])
                    if not isinstance(s, list) or not all(map(is_int, s))])
    found += first([p for s in profile['samples']
                    for p in sample_shape_problems(s)])
    found += first([p for t in profile['thread_metadata'].items()
                    for p in metadata_shape_problems(*t)])
    return found


def frame_shape_problems(frame):
    # in_app on every frame: without it the server guesses, and for this
    # platform takes nearly everything for the application.
    found = fields_problems(frame, 'a frame', FRAME_FIELDS,
                            {'instruction_addr', 'in_app'})
    if found:
        return found
    address = frame['instruction_addr']
    if not isinstance(address, str) or not ADDRESS.fullmatch(address) or \
            int(address, 16) == 0:
        found.append(f'instruction_addr {address} is not a string 0x...')
    if not isinstance(frame['in_app'], bool):
        found.append('in_app is neither true nor false')
    # A line is one of a file.
    if 'lineno' in frame and (not is_int(frame['lineno']) or
                              frame['lineno'] <= 0 or
                              'abs_path' not in frame):
        found.append(f'lineno {frame["lineno"]} of a frame')
    if ('filename' in frame or 'abs_path' in frame) and \
            str(frame.get('abs_path')).rpartition('/')[2] != \
            frame.get('filename'):
        found.append(f'filename {frame.get("filename")} is not of its path')
    for name in ('function', 'package', 'module', 'filename', 'abs_path'):
        if not is_text(frame.get(name, 'absent')):
            found.append(f'{name} of a frame is no text')
    return found


def sample_shape_problems(sample):
    found = fields_problems(sample, 'a sample', SAMPLE_FIELDS, SAMPLE_FIELDS)
    if found:
        return found
    time = sample['timestamp']
    if isinstance(time, bool) or not isinstance(time, (int, float)) or \
            not math.isfinite(time) or time <= 0:
        found.append('a timestamp is no finite number')
    elif round(time, 6) != time:
        found.append('a timestamp is finer than microseconds')
    if not isinstance(sample['thread_id'], str) or \
            not re.fullmatch('[1-9][0-9]*', sample['thread_id']):
        found.append('a thread_id is not a string of digits')
    if not is_int(sample['stack_id']) or sample['stack_id'] < 0:
        found.append('a stack_id is no index')
    return found


def metadata_shape_problems(tid, data):
    found = fields_problems(data, f'thread {tid}', THREAD_FIELDS, {'name'})
    if not found and not isinstance(data['name'], str):
        found.append(f'the name of thread {tid} is no text')
    if not found and (not is_int(data.get('priority', 0)) or
                      data.get('priority', 0) < 0):
        found.append(f'the priority of thread {tid} is negative or no number')
    return found


def image_problems(images):
    """The server takes the last image that starts before an address, and
    wants no doubt about it."""
    found = []
    by_addr = sorted(images, key=lambda i: int(i['image_addr'], 16))
    for a, b in zip(by_addr, by_addr[1:]):
        if int(a['image_addr'], 16) + a['image_size'] > \
                int(b['image_addr'], 16):
            found.append(f'{a["code_file"]} and {b["code_file"]} overlap')
    return found


def index_problems(profile):
    """Also in stacks that no sample uses: the server looks at all."""
    found = []
    n_frames, n_stacks = len(profile['frames']), len(profile['stacks'])
    if any(not 0 <= f < n_frames for s in profile['stacks'] for f in s):
        found.append('a stack has a frame that is not there')
    if any(s['stack_id'] >= n_stacks for s in profile['samples']):
        found.append('a sample has a stack that is not there')
    return found


def by_thread(profile):
    """{thread_id: its samples in order}."""
    threads = collections.defaultdict(list)
    for s in profile['samples']:
        threads[s['thread_id']].append(s)
    return threads


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
    # One timestamp a tick for all threads: there are never more of them than
    # there were ticks. A tick may come late, by less than a period, and the
    # last timestamp is the end's, which may follow at once.
    period = 1 / rate_hz
    latest = -math.inf
    for i, time in enumerate(sorted(set(times))):
        late = time - i * period
        if latest - late > 2 * period + 1e-5:
            found.append(f'more timestamps than ticks, at {time:.6f}')
            break
        latest = max(latest, late)
    return found


def thread_problems(profile):
    found = []
    threads = by_thread(profile)
    stacks = profile['stacks']
    end = max(s['timestamp'] for s in profile['samples'])
    for tid, samples in threads.items():
        # All samples of a thread with less are dropped.
        if sum(bool(stacks[s['stack_id']]) for s in samples) < 2:
            found.append(f'thread {tid} has not two samples with a stack')
        # A sample lasts until the thread's next: those between the first and
        # the last of the same stack say nothing. (One more is the copy that
        # ends the chunk.)
        ids = [s['stack_id'] for s in samples if s['timestamp'] < end]
        if any(a == b == c for a, b, c in zip(ids, ids[1:], ids[2:])):
            found.append(f'thread {tid} repeats a stack without need')
        if tid not in profile['thread_metadata']:
            found.append(f'thread {tid} is not in thread_metadata')
    for tid in profile['thread_metadata'].keys() - threads.keys():
        found.append(f'thread_metadata has thread {tid} without samples')
    return found


def inlined_frames(frames, stacks):
    """{frame index} of those whose caller in a stack has the same address but
    another name. Recursion is the same frame twice."""
    return {inner for s in stacks for inner, f in zip(s, s[1:])
            if inner != f and frames[inner]['instruction_addr'] ==
            frames[f]['instruction_addr'] and
            frames[inner].get('function') != frames[f].get('function')}


def waste_problems(chunk):
    """Everything is there once, and is used."""
    found = []
    profile = chunk['profile']
    frames, stacks = profile['frames'], profile['stacks']
    if {s['stack_id'] for s in profile['samples']} != set(range(len(stacks))):
        found.append('a stack that no sample uses')
    if {f for s in stacks for f in s} != set(range(len(frames))):
        found.append('a frame that no stack uses')
    if len({tuple(s) for s in stacks}) != len(stacks):
        found.append('two equal stacks')
    # As a leaf an address is what is executed, as a caller the one before it
    # is: the same number, two places. And functions that were inlined there
    # are frames of their own, beside each other.
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
    for start, image in starts:
        if not any(start <= int(f['instruction_addr'], 16) <=
                   start + image['image_size'] for f in frames):
            found.append(f'no frame is in {image["code_file"]}')
    return found


def frame_problems(chunk):
    found = []
    frames = chunk['profile']['frames']
    images = chunk['debug_meta']['images']
    for stack in chunk['profile']['stacks']:
        # Else the server cuts off the two outermost frames.
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
        # Nobody's code is not the application's, nor is the system's. (Who
        # the main executable is the layout knows.) What the program made
        # itself is, and known by its name.
        made = package is None and not inside and \
            not BY_OFFSET.fullmatch(f.get('function', '?+0x0'))
        if f['in_app'] and not made and (package or '?')[0] != '/':
            found.append(f'in_app without a file: {f}')
    return found


def uses_of_frames(profile, layout):
    """{frame index} of leaves, of callers, and of callers that certainly are
    return addresses.

    Where a signal interrupted is none, nor is the trampoline before it. What
    called the unwinder of exceptions may be none: it enters a handler by
    returning to it, and shortly before has that one's registers, with which
    nobody finds the way through its own stack.
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


def layout_problems(chunk, layout):
    """What is said of the target's memory is true."""
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
    for i in leaves:
        found += place_problems(frames[i], 0, layout)
    for i in callers:
        found += place_problems(frames[i], 1, layout)
    for i in returns:
        # Raw addresses: it is the server that subtracts one.
        if layout.follows_call(int(frames[i]['instruction_addr'], 16)) is \
                False:
            found.append(f'no call stands before {frames[i]}')
    return found


def place_problems(frame, back, layout):
    """back: how far before the address it is looked up."""
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
    if name is None:
        if sized:
            found.append(f'{frame} is in {sized}')
    elif by_offset and name not in sized | unsized:
        # The name of what has none, where one must be.
        ours = False
        base = m.path.rpartition('/')[2]
        if sized or by_offset[1] != base or \
                int(by_offset[2], 16) != address - m.image[0]:
            found.append(f'{frame} is {base}+{address - m.image[0]:#x}')
    elif name not in (sized or unsized):
        found.append(f'{frame} is in {sized or unsized}')
    if frame['in_app'] != ours:
        found.append(f'in_app is not {ours}: {frame}')
    return found


def stream_problems(chunks):
    """The chunks of one process, in the order of their making."""
    found = []
    if len({c['profiler_id'] for c in chunks}) != 1:
        found.append('not one profiler_id')
    if len({c['chunk_id'] for c in chunks}) != len(chunks):
        found.append('a chunk_id twice')
    for a, b in zip(chunks, chunks[1:]):
        end = max(s['timestamp'] for s in a['profile']['samples'])
        start = min(s['timestamp'] for s in b['profile']['samples'])
        # Each chunk stands for itself: where the next one starts, this one
        # ends, or the time between is nobody's.
        if start != end:
            found.append(f'{start - end:+.6f} s between two chunks')
        before, after = by_thread(a['profile']), by_thread(b['profile'])
        for tid in before.keys() & after.keys():
            # An empty stack says that nothing is known.
            stack = a['profile']['stacks'][before[tid][-1]['stack_id']]
            if stack and before[tid][-1]['timestamp'] != end:
                found.append(f'thread {tid} ends before its chunk')
            if stack and after[tid][0]['timestamp'] != start:
                found.append(f'thread {tid} starts after its chunk')
    return found


# What the server makes of samples: time.

class Bar:
    """A stack of a thread, and for how long. names: the innermost first."""

    def __init__(self, chunk, sample, seconds):
        profile = chunk['profile']
        self.thread = sample['thread_id']
        self.start = sample['timestamp']
        self.seconds = seconds
        self.frames = [profile['frames'][f]
                       for f in profile['stacks'][sample['stack_id']]]
        self.names = [f.get('function') for f in self.frames]


def bars(chunk):
    """Each sample lasts until the next of its thread; an empty one is idle."""
    result = []
    for samples in by_thread(chunk['profile']).values():
        for s, following in zip(samples, samples[1:]):
            bar = Bar(chunk, s, following['timestamp'] - s['timestamp'])
            if bar.frames:
                result.append(bar)
    return result


def thread_seconds(chunk):
    """{thread_id: seconds with a stack}."""
    seconds = collections.Counter()
    for bar in bars(chunk):
        seconds[bar.thread] += bar.seconds
    return seconds


def thread_ids(chunk, name):
    return [tid for tid, data in
            chunk['profile']['thread_metadata'].items()
            if data['name'] == name]


def load(payload):
    """Like the server: NaN and Infinity are no JSON."""
    def refuse(text):
        raise ValueError(f'{text} is not JSON')
    return json.loads(payload, parse_constant=refuse)
