#!/usr/bin/python3
"""The checker of chunks can fail: a good chunk is spoiled in one way at a
time."""

import copy
import json
import re

import chunk_rules
import envelopes
import harness
from harness import check
from layout import Layout


class Spoiled:
    """A copy of an envelope that can be changed."""

    def __init__(self, envelope):
        self.header = copy.deepcopy(envelope.header)
        self.item = copy.deepcopy(envelope.item)
        self.chunk = copy.deepcopy(envelope.chunk)
        self.payload = envelope.payload
        self.items = [(self.item, self.payload)]
        self.profile = self.chunk['profile']
        self.images = self.chunk['debug_meta']['images']
        self.frames = self.profile['frames']
        self.stacks = self.profile['stacks']
        self.samples = self.profile['samples']
        self.threads = self.profile['thread_metadata']

    def image(self, end):
        return next(i for i in self.images if i['code_file'].endswith(end))

    def frame(self, name):
        return next(f for f in self.frames if f.get('function') == name)


def later(e):
    e.samples[-1]['timestamp'] += 70


def out_of_order(e):
    e.samples[0], e.samples[-1] = e.samples[-1], e.samples[0]


def one_sample(e):
    tid = e.samples[0]['thread_id']
    e.samples[1:] = [s for s in e.samples[1:] if s['thread_id'] != tid]
    e.stacks[:] = [[]] + e.stacks


def own_timestamps(e):
    for i, s in enumerate(e.samples):
        s['timestamp'] = round(s['timestamp'] + i * 1e-6, 6)


def repeated(e):
    """Makes one thread sleep for 24 ticks, while the others run, and adds a
    sample in the middle of its sleep."""
    times = sorted({s['timestamp'] for s in e.samples})[:25]
    tid = e.samples[0]['thread_id']
    e.samples[:] = [dict(e.samples[0], thread_id=t, timestamp=time)
                    for n, time in enumerate(times) for t in e.threads
                    if t != tid or n in (0, 12, 23, 24)]


def measured_often(e):
    for m in e.chunk['measurements'].values():
        v = m['values'][0]
        m['values'] = [v, dict(v, timestamp=v['timestamp'] + 0.5)]


def empty_waits(e):
    e.stacks.append([])
    e.samples[0].update(stack_id=len(e.stacks) - 1, state='waiting')


def empty_is_ready(e):
    empty_waits(e)
    e.samples[0]['state'] = 'ready'


def as_sent(envelope):
    """Returns a copy of an envelope from a file, as the server would get it.
    """
    e = Spoiled(envelope)
    e.header['sent_at'] = '2026-01-01T00:00:00Z'
    for image in e.images:
        image.pop('code_id', None)
    e.samples[:] = envelopes.samples_for_server(e.samples)
    for sample in e.samples:
        sample.pop('state', None)
    e.chunk.pop('ready_known')
    e.chunk.pop('symbols')
    return e


def next_to_root(e):
    del e.frames[next(s for s in e.stacks if len(s) > 1)[-2]]['function']


def subtracted(e):
    f = e.frame('main')
    f['instruction_addr'] = hex(int(f['instruction_addr'], 16) - 1)


def shifted_image(e):
    i = e.image('threads')
    i['image_addr'] = hex(int(i['image_addr'], 16) + 4096)


def raw_build_id(e):
    # 40 digits, the length of a build-id.
    i = e.image('threads')
    i['debug_id'] = i['debug_id'].replace('-', '') + '01234567'


def not_swapped(e):
    i = e.image('threads')
    d = i['debug_id']
    i['debug_id'] = d[6:8] + d[4:6] + d[2:4] + d[0:2] + d[8:]


def twice(key):
    def spoil(e):
        getattr(e, key).append(copy.deepcopy(getattr(e, key)[0]))
    return spoil


def put(path, value):
    """Sets a field; the path's parts are keys and indices."""
    def spoil(e):
        *way, last = path
        at = e.chunk
        for key in way:
            at = at[key]
        at[last] = value
    return spoil


def drop(*path):
    def spoil(e):
        *way, last = path
        at = e.chunk
        for key in way:
            at = at[key]
        del at[last]
    return spoil


IMAGE = ('debug_meta', 'images', 0)
FRAME = ('profile', 'frames', 0)
SAMPLE = ('profile', 'samples', 0)
CPU = ('measurements', 'cpu_usage')

# Each change, and the message that it must cause.
FAULTS = [
    (lambda e: e.header.update(event_id='abc'), 'event_id'),
    (lambda e: e.header.update(sent_at='2026-01-01T00:00:00Z'), 'sent_at'),
    (lambda e: e.header.update(sdk={}), 'client_sdk differ'),
    (lambda e: e.item.update(platform='native'), "item's platform"),
    (lambda e: e.item.update(content_type='text/plain'), 'content_type'),
    (lambda e: e.item.pop('platform'), 'item header'),
    (lambda e: e.items.append(e.items[0]), 'exactly one'),
    (put(['platform'], 'native'), 'platform is native'),
    (put(['version'], 2), 'version'),
    (put(['profiler_id'], 'F' * 32), 'profiler_id'),
    (put(['chunk_id'], '0123456789abcdef' * 2), 'chunk_id'),
    (drop('release'), 'no release'),
    (put(['environment'], None), 'environment is null'),
    (put(['measurements'], {'cpu': {'unit': '%', 'values': []}}), 'unit %'),
    (put(['measurements'], {'x': {'unit': 'byte', 'values': []}}),
     'measurements are'),
    (put([*CPU, 'unit'], 'hz'), 'measurements are'),
    (put([*CPU, 'values', 0], {'timestamp': 1.5}), 'not timestamp and value'),
    (put([*CPU, 'values', 0, 'value'], '7'), 'not two numbers'),
    (put([*CPU, 'values', 0, 'value'], -1), 'not two numbers'),
    (put([*CPU, 'values'], []), 'of the same times'),
    (put(['measurements'], {n: {'unit': u, 'values': [
        {'timestamp': 1.5, 'value': 0}]} for n, u in
        chunk_rules.MEASUREMENTS.items()}), "not of the samples' time"),
    (measured_often, 'more than once a second'),
    (put(['build'], '1'), 'unknown field build'),
    (drop('debug_meta'), 'no debug_meta'),
    (put([*IMAGE, 'type'], 'elf'), 'type elf'),
    (put([*IMAGE, 'image_addr'], 4096), 'image_addr'),
    (put([*IMAGE, 'image_size'], '0x1000'), 'image_size'),
    (put([*IMAGE, 'code_id'], '00'), 'code_id 00 is not in'),
    (drop(*IMAGE, 'code_id'), 'code_id None is not in'),
    (put([*IMAGE, 'image_size'], 1 << 47), 'overlap'),
    (raw_build_id, 'no UUID'),
    (not_swapped, 'is not in'),
    (shifted_image, 'is not in'),
    (lambda e: e.images.extend(dict(e.images[0], image_addr=addr, image_size=1)
                               for addr in ('0x1000', '0x2000')), 'no frame is in'),
    (put([*FRAME, 'instruction_addr'], 1234), 'instruction_addr'),
    (put([*FRAME, 'instruction_addr'], '0x0'), 'instruction_addr'),
    (drop(*FRAME, 'instruction_addr'), 'no instruction_addr'),
    (drop(*FRAME, 'in_app'), 'no in_app'),
    (put([*FRAME, 'in_app'], None), 'in_app is null'),
    (put([*FRAME, 'platform'], 'native'), 'unknown field platform'),
    (lambda e: e.frame('main').update(in_app=False), 'in_app is not True'),
    (lambda e: e.frame('start_thread' if any(
        f.get('function') == 'start_thread' for f in e.frames)
        else '__libc_start_main').update(in_app=True), 'in_app is not False'),
    (lambda e: e.frame('main').update(function='mine'), "is in {'main'}"),
    (lambda e: e.frame('main').pop('function'), "is in {'main'}"),
    (lambda e: e.frame('main').update(package='/bin/sh'), 'not in /bin/sh'),
    (next_to_root, 'next to a root'),
    (subtracted, 'no call stands before'),
    (twice('frames'), 'frame that no stack uses'),
    (twice('stacks'), 'two equal stacks'),
    (put(['profile', 'stacks', 0, 0], 1 << 20), 'frame that is not there'),
    (lambda e: e.stacks.append([-1]), 'frame that is not there'),
    (put([*SAMPLE, 'stack_id'], 1 << 20), 'stack that is not there'),
    (put([*SAMPLE, 'stack_id'], -1), 'stack_id'),
    (put([*SAMPLE, 'state'], 'running'), 'state running'),
    (put([*SAMPLE, 'state'], 'other'), 'state other'),
    (empty_waits, 'an empty stack is waiting'),
    (empty_is_ready, 'an empty stack is ready'),
    (lambda e: e.chunk.pop('ready_known'), 'has no ready_known'),
    (put(['ready_known'], False), 'ready_known is not true'),
    (put([*SAMPLE, 'thread_id'], 17), 'thread_id'),
    (put([*SAMPLE, 'timestamp'], '1.5'), 'timestamp'),
    (put([*SAMPLE, 'timestamp'], float('nan')), 'timestamp'),
    (lambda e: e.samples.insert(1, e.samples[0]), 'two samples at a time'),
    (later, 's long'),
    (out_of_order, 'order of time'),
    (own_timestamps, 'more timestamps than ticks'),
    (repeated, 'without need'),
    (lambda e: e.threads.update({'1': {'name': 'init'}}), 'without samples'),
    (lambda e: e.threads.popitem(), 'not in thread_metadata'),
    (lambda e: next(iter(e.threads.values())).update(priority=-5),
     'priority'),
    (put(['profile', 'thread_metadata'], None), 'thread_metadata is null'),
    (put(['profile', 'samples'], []), 'samples is no list, or empty'),
]


# The same for envelopes that were sent to a server.
FAULTS_SENT = [
    (put([*IMAGE, 'code_id'], '00'), 'unknown field code_id'),
    (put([*SAMPLE, 'state'], 'waiting'), 'unknown field state'),
    (put(['ready_known'], True), 'unknown field ready_known'),
    (put(['symbols'], 'names'), 'unknown field symbols'),
]


def measured(box, target):
    """Returns a chunk with measurements, which not all short chunks have."""
    profd = box.profd([target], '--chunk-seconds', '1')
    harness.wait_for(lambda: any(b'"measurements"' in p.read_bytes() for p in
                                 profd.output.glob('*.envelope')),
                     'measurements')
    return next(e for e in profd.interrupt().envelopes
                if 'measurements' in e.chunk)


def test_each_fault_is_seen(box):
    target = box.target('threads')
    layout = Layout(target.pid)
    good = measured(box, target)
    found = chunk_rules.problems(good, layout)
    check(found == [], f'a good chunk: {found[:5]}')
    found = chunk_rules.problems(as_sent(good), layout, sent=True)
    check(found == [], f'a good chunk that was sent: {found[:5]}')
    missed = []
    for faults, made, sent in ((FAULTS, Spoiled, False),
                               (FAULTS_SENT, as_sent, True)):
        for n, (spoil, text) in enumerate(faults):
            spoiled = made(good)
            spoil(spoiled)
            found = chunk_rules.problems(spoiled, layout, sent=sent)
            if not any(text in p for p in found):
                missed.append(f'{n} ({text}): {found[:3]}')
    check(missed == [], 'not seen: ' + '\n'.join(missed))
    print(f'{len(FAULTS + FAULTS_SENT)} faults')


def test_faults_of_a_stream_are_seen(box):
    target = box.target('shares')
    profd = box.profd([target], '--chunk-seconds', '1')
    profd.wait_chunks(2)
    a, b = profd.interrupt().chunks[:2]
    found = chunk_rules.stream_problems([a, b])
    check(found == [], f'good chunks: {found}')
    stranger = dict(b, profiler_id='0' * 32)
    early, late = copy.deepcopy(a), copy.deepcopy(b)
    early['profile']['samples'][-1]['timestamp'] -= 1e-5
    late['profile']['samples'][0]['timestamp'] += 1e-5
    for chunks, text in (([a, stranger], 'profiler_id'),
                         ([a, a], 'twice'),
                         ([b, a], 'between two chunks'),
                         ([early, b], 'ends before|between two chunks'),
                         ([a, late], 'starts after|between two chunks')):
        found = chunk_rules.stream_problems(chunks)
        check(any(re.search(text, p) for p in found), f'{text}: {found}')


def test_constants_are_no_json(box):
    for text in ('NaN', 'Infinity'):
        try:
            chunk_rules.load(f'[{text}]')
        except ValueError:
            continue
        check(False, f'{text} was taken for JSON')
    check(json.loads('[1.5]') == chunk_rules.load('[1.5]'), 'good JSON')


if __name__ == '__main__':
    harness.main(globals())
