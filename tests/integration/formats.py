"""Readers of the formats that sentry-profctl convert writes, made from the
formats' specifications only. Each returns {(thread, (function, ...)):
microseconds}, the functions root first.
"""

import base64
import collections
import gzip
import json
import re
import zlib

from patience import check


def us(seconds):
    return round(seconds * 1e6)


def page_data(path):
    """Returns the unpacked data of a page."""
    return zlib.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<',
                                                      path.read_text())[1]))


def name_of(frame):
    if frame.get('function'):
        return frame['function']
    return f"[{frame.get('package', 'unknown').rsplit('/', 1)[-1]}]"


def chunk_bars(chunk):
    """Yields (thread id, names, start, end, state) of each bar, in the order of the ends."""
    profile = chunk['profile']
    last = {}
    for s in profile['samples']:
        before = last.get(s['thread_id'])
        last[s['thread_id']] = s
        if before is None:
            continue
        stack = profile['stacks'][before['stack_id']]
        if stack:
            names = tuple(name_of(profile['frames'][f]) for f in reversed(stack))
            yield (before['thread_id'], names, us(before['timestamp']),
                   us(s['timestamp']), before.get('state', 'running'))


def labels(chunks):
    """Returns {(profiler_id, thread_id): the thread's label}."""
    names = {}
    for chunk in sorted(chunks, key=lambda c: c['profile']['samples'][0]['timestamp']):
        for s in chunk['profile']['samples']:
            key = chunk['profiler_id'], s['thread_id']
            data = chunk['profile']['thread_metadata'].get(s['thread_id'], {})
            names[key] = data.get('name') or names.get(key) or s['thread_id']
    shared = collections.Counter(names.values())
    return {key: name if shared[name] == 1 else f'{name} ({key[1]})'
            for key, name in names.items()}


def of_chunks(chunks, state=None):
    called = labels(chunks)
    totals = collections.Counter()
    for chunk in chunks:
        for thread, names, start, end, running in chunk_bars(chunk):
            if state in (None, running):
                totals[called[chunk['profiler_id'], thread], names] += end - start
    return +totals


def of_folded(data):
    totals = collections.Counter()
    for line in data.decode().splitlines():
        stack, _, value = line.rpartition(' ')
        thread, *names = stack.split(';')
        totals[thread, tuple(names)] += int(value)
    return totals


def of_json(data):
    return of_chunks([json.loads(line) for line in data.splitlines()])


def of_speedscope(data):
    """https://www.speedscope.app/file-format-schema.json"""
    file = json.loads(data)
    check(file['$schema'] == 'https://www.speedscope.app/file-format-schema.json',
          file['$schema'])
    frames = [f['name'] for f in file['shared']['frames']]
    totals = collections.Counter()
    for profile in file['profiles']:
        check(profile['type'] == 'evented' and profile['unit'] == 'microseconds',
              profile['type'])
        now, stack = profile['startValue'], []
        for event in profile['events']:
            check(now <= event['at'] <= profile['endValue'], f'order: {event}')
            if stack and event['at'] > now:
                key = profile['name'], tuple(frames[f] for f in stack)
                totals[key] += event['at'] - now
            now = event['at']
            if event['type'] == 'O':
                stack.append(event['frame'])
            else:
                check(event['type'] == 'C' and stack.pop() == event['frame'],
                      f'nesting: {event}')
        check(not stack, 'frames stay open')
    return totals


FIREFOX_COLUMNS = {
    'stackTable': {'frame', 'prefixOffset'},
    'frameTable': {'address', 'lib', 'inlineDepth', 'category', 'subcategory',
                   'func', 'nativeSymbol', 'innerWindowID', 'line', 'column',
                   'originalLocation'},
    'funcTable': {'name', 'isJS', 'relevantForJS', 'resource', 'source',
                  'lineNumber', 'columnNumber', 'originalLocation'},
    'resourceTable': {'name', 'host', 'type'},
    'nativeSymbols': {'libIndex', 'address', 'name', 'functionSize'},
    'sources': {'id', 'filename', 'startLine', 'startColumn', 'sourceMapURL',
                'content'},
    'sourceLocationTable': {'source', 'line', 'column'},
}


def check_columns(table, columns, what):
    check(set(table) == columns | {'length'}, f'{what}: {set(table)}')
    for column in columns:
        check(len(table[column]) == table['length'], f'{what}.{column}')


def of_firefox(data, values=None):
    """github.com/firefox-devtools/profiler, src/types/profile.ts, version 70.
    values: gets {thread: (microseconds that ran, those of category Ready)}."""
    file = json.loads(data)
    meta, shared = file['meta'], file['shared']
    check(meta['preprocessedProfileVersion'] == 70, f'{meta}')
    check(any(c['color'] == 'grey' for c in meta['categories']), f'{meta}')
    for name, columns in FIREFOX_COLUMNS.items():
        check_columns(shared[name], columns, name)
    frames, funcs, stacks = (shared[t] for t in
                             ('frameTable', 'funcTable', 'stackTable'))
    strings = shared['stringArray']
    for lib, address in zip(frames['lib'], frames['address']):
        check((lib == -1) == (address == -1), 'a library without an address')
        check(lib < len(file['libs']), 'no such library')
    for lib in file['libs']:
        check(set(lib) == {'arch', 'name', 'path', 'debugName', 'debugPath',
                           'breakpadId', 'codeId'}, f'{lib}')

    def names(stack):
        found = []
        while True:
            found.append(strings[funcs['name'][frames['func'][stacks['frame'][stack]]]])
            offset = stacks['prefixOffset'][stack]
            check(0 <= offset <= stack, 'prefixOffset')
            if offset == 0:
                return tuple(reversed(found))
            stack -= offset

    totals = collections.Counter()
    for thread in file['threads']:
        samples = thread['samples']
        check(samples['weightType'] == 'tracing-ms', samples['weightType'])
        check(samples['time'] == sorted(samples['time']), 'order')
        check(isinstance(thread['pid'], str), f"pid {thread['pid']}")
        stacked = [(stack, weight) for stack, weight in
                   zip(samples['stack'], samples['weight'], strict=True) if stack is not None]
        check(sum(samples['weight']) == sum(weight for _, weight in stacked), 'weights')
        for stack, weight in stacked:
            totals[thread['name'], names(stack)] += round(weight * 1000)
        if values is not None:
            ready = [c['name'] for c in meta['categories']].index('Ready')
            values[thread['name']] = sum(samples['threadCPUDelta']), round(sum(
                weight for stack, weight in stacked
                if frames['category'][stacks['frame'][stack]] == ready) * 1000)
    return +totals


def of_self_profiling(data, thread=None):
    """The format of the JS Self-Profiling API. thread: the only thread, which
    no frame names; if not given, the outermost frame names the thread."""
    file = json.loads(data)
    check(set(file) == {'frames', 'resources', 'samples', 'stacks'}, f'{set(file)}')
    for frame in file['frames']:
        check(set(frame) <= {'name', 'resourceId'} and 'name' in frame, f'{frame}')
        check(frame.get('resourceId', -1) < len(file['resources']), f'{frame}')

    def names(stack):
        found = []
        while stack is not None:
            found.append(file['frames'][file['stacks'][stack]['frameId']]['name'])
            parent = file['stacks'][stack].get('parentId')
            check(parent is None or parent < stack, 'order of stacks')
            stack = parent
        return tuple(reversed(found))

    totals, last, now = collections.Counter(), {}, 0
    for sample in file['samples']:
        check(sample['timestamp'] >= now, 'order of samples')
        now = sample['timestamp']
        stack = names(sample.get('stackId'))
        key = thread
        if thread is None:
            key, *stack = stack
        time = round(now * 1000)
        before, start = last.get(key, ((), time))
        if before:
            totals[key, tuple(before)] += time - start
        last[key] = stack, time
    check(not any(stack for stack, _ in last.values()), 'a stack without an end')
    return +totals


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def message(data):
    """Returns {field number: [value]} of a protobuf message. Values are numbers or bytes."""
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            check(key & 7 == 2, f'wire type {key & 7}')
            size, at = varint(data, at)
            check(at + size <= len(data), 'a field beyond the end')
            value, at = data[at:at + size], at + size
        fields[key >> 3].append(value)
    return fields


def numbers(packed):
    found, at = [], 0
    data = b''.join(packed)
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


class Pprof:
    """github.com/google/pprof, proto/profile.proto."""

    def __init__(self, data):
        fields = message(gzip.decompress(data))
        self.strings = [s.decode() for s in fields[6]]
        check(self.strings[0] == '', 'the first string')
        one = lambda m, field: (m[field] or [0])[0]
        text = lambda m, field: self.strings[one(m, field)]
        self.types = [(text(m, 1), text(m, 2)) for m in map(message, fields[1])]
        self.default = self.strings[one(fields, 14)]
        self.time_ns, self.duration_ns = one(fields, 9), one(fields, 10)
        functions = {one(m, 1): text(m, 2) for m in map(message, fields[5])}
        # go tool pprof removes types and arguments from a name that equals its
        # system name.
        check(all(one(m, 3) == 0 for m in map(message, fields[5])), 'system_name')
        self.mappings = {one(m, 1): {'start': one(m, 2), 'limit': one(m, 3),
                                     'file': text(m, 5), 'build_id': text(m, 6)}
                         for m in map(message, fields[3])}
        locations = {}
        for m in map(message, fields[4]):
            lines = [functions[one(message(line), 1)] for line in m[4]]
            check(len(lines) == 1, f'{lines}')
            mapping = self.mappings.get(one(m, 2))
            check(mapping is None or
                  mapping['start'] <= one(m, 3) < mapping['limit'], 'mapping')
            locations[one(m, 1)] = lines[0]
        self.samples = []
        for m in map(message, fields[2]):
            tags = {text(t, 1): text(t, 2) for t in map(message, m[3])}
            names = tuple(locations[n] for n in reversed(numbers(m[1])))
            self.samples.append((tags, names, numbers(m[2])))

    def totals(self, value):
        """value: 0 for samples, 1 for wall, 2 for ready, 3 for running time."""
        result = collections.Counter()
        for tags, names, values in self.samples:
            result[tags['thread'], names] += \
                values[value] if value == 0 else values[value] // 1000
        return +result


def of_pprof(data):
    return Pprof(data).totals(1)


READERS = {
    'folded': of_folded,
    'json': of_json,
    'speedscope': of_speedscope,
    'firefox': of_firefox,
    'self-profiling': of_self_profiling,
    'pprof': of_pprof,
}
