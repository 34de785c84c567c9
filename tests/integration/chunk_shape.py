"""The parts of an envelope with a chunk: the fields that exist, and the kind
of value that each has. chunk_rules.py checks their meaning.
"""

import math
import re

from envelopes import samples_for_server

HEX_ID = re.compile('[0-9a-f]{32}')
# Random UUIDs (version 4), without dashes.
UUID4 = re.compile('[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}')
DEBUG_ID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
ADDRESS = re.compile('0x(0|[1-9a-f][0-9a-f]{0,15})')
SEMVER = re.compile(r'(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)'
                    r'(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?')
RFC3339 = re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z')

PAYLOAD_MAX = 50 * 1000 * 1000
UNITS = {'nanosecond', 'ns', 'hertz', 'hz', 'byte', 'percent'}

# The fields that the server keeps. It silently drops other fields, so sending
# one is a mistake. A frame must not have a "platform", which would switch off
# symbolication for the frame.
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
# Further fields that only files have.
FILE_CHUNK_FIELDS = {'ready_known', 'symbols'}
FILE_FRAME_FIELDS = {'lines'}
LINE_FIELDS = {'function', 'file', 'line'}
FILE_IMAGE_FIELDS = {'code_id'}
FILE_SAMPLE_FIELDS = {'state'}
THREAD_FIELDS = {'name', 'priority'}


def envelope_problems(envelope, sent):
    found = []
    header, item = envelope.header, envelope.item
    if not HEX_ID.fullmatch(str(header.get('event_id'))):
        found.append('event_id is not 32 hex digits')
    # sent_at is the time of the request. A stored envelope may wait for hours.
    if sent and not RFC3339.fullmatch(str(header.get('sent_at'))):
        found.append('sent_at is not RFC 3339 in UTC')
    if not sent and 'sent_at' in header:
        found.append('sent_at in an envelope that was not sent')
    if [i[0].get('type') for i in envelope.items].count('profile_chunk') != 1:
        found.append('not exactly one profile_chunk')
        return found
    # Rate limits depend on the platform, so the header must have it.
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


def kept_by_server(chunk, sent):
    """Returns a copy without the samples and the members that the server does
    not get. sent: the chunk that it got."""
    def only(fields, objects):
        return [{k: v for k, v in o.items() if k in fields} for o in objects]
    profile, meta = chunk['profile'], chunk['debug_meta']
    return {**{k: v for k, v in chunk.items() if k in CHUNK_FIELDS},
            'debug_meta': {'images': only(IMAGE_FIELDS, meta['images'])},
            'profile': {**profile, 'frames': only(FRAME_FIELDS, profile['frames']),
                        'samples': only(
                SAMPLE_FIELDS, samples_for_server(profile['samples'],
                                                  sent['profile']['samples']))}}


def fields_problems(value, what, allowed, required):
    if not isinstance(value, dict):
        return [f'{what} is no object']
    found = [f'{what} has an unknown field {k}'
             for k in sorted(set(value) - allowed)]
    found += [f'{what} has no {k}' for k in sorted(required - set(value))]
    # The server accepts an absent field, but for most of them not null.
    found += [f'{what}.{k} is null' for k in value if value[k] is None]
    return found


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and \
        not isinstance(value, bool) and math.isfinite(value) and value >= 0


def is_address(value):
    return isinstance(value, str) and ADDRESS.fullmatch(value) is not None


def is_text(value):
    return isinstance(value, str) and value != ''


def first(found):
    """Returns the first ones: thousands of samples can have the same fault."""
    return found[:1]


def chunk_shape_problems(chunk, sent):
    of_file = set() if sent else FILE_CHUNK_FIELDS
    found = fields_problems(chunk, 'chunk', CHUNK_FIELDS | of_file,
                            CHUNK_REQUIRED | of_file)
    if found:
        return found
    if chunk['version'] != '2':
        found.append('version is not the string "2"')
    if not sent and chunk['ready_known'] is not True:
        found.append('ready_known is not true')
    if not sent and chunk['symbols'] not in ('none', 'names', 'lines'):
        found.append(f'symbols is {chunk["symbols"]}')
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
            found += first(image_shape_problems(image, sent))
    return found + profile_shape_problems(chunk['profile'], sent)


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
            elif not all(is_number(n) for n in v.values()):
                found.append(f'measurement {name}: {v} are not two numbers')
    return found


def image_shape_problems(image, sent):
    found = fields_problems(
        image, 'an image', IMAGE_FIELDS | (set() if sent else
                                           FILE_IMAGE_FIELDS), IMAGE_FIELDS)
    if found:
        return found
    # The type is not "elf", which the server does not accept in profiles.
    if image['type'] != 'symbolic':
        found.append(f'an image of type {image["type"]}')
    if not is_text(image['code_file']):
        found.append('an image without code_file')
    # A whole build-id would be accepted, but as the id of another file.
    if not DEBUG_ID.fullmatch(str(image['debug_id'])):
        found.append(f'debug_id {image["debug_id"]} is no UUID')
    for name in ('image_addr', 'image_vmaddr'):
        if not is_address(image[name]):
            found.append(f'{name} is not a string 0x...')
    if not is_int(image['image_size']) or image['image_size'] <= 0:
        found.append('image_size is not a positive number')
    return found


def profile_shape_problems(profile, sent):
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
                    for p in frame_shape_problems(f, sent)])
    found += first([f'stack {i} is no list of numbers'
                    for i, s in enumerate(profile['stacks'])
                    if not isinstance(s, list) or not all(map(is_int, s))])
    found += first([p for s in profile['samples']
                    for p in sample_shape_problems(s, profile, sent)])
    found += first([p for t in profile['thread_metadata'].items()
                    for p in metadata_shape_problems(*t)])
    return found


def frame_shape_problems(frame, sent):
    # Every frame must have in_app. Without it the server guesses, and for this
    # platform takes nearly all code for the application's.
    found = fields_problems(
        frame, 'a frame', FRAME_FIELDS | (set() if sent else FILE_FRAME_FIELDS),
        {'instruction_addr', 'in_app'})
    if found:
        return found
    address = frame['instruction_addr']
    if not is_address(address) or int(address, 16) == 0:
        found.append(f'instruction_addr {address} is not a string 0x...')
    if not isinstance(frame['in_app'], bool):
        found.append('in_app is neither true nor false')
    # A frame with a line must have a file.
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
    return found + lines_problems(frame.get('lines', [{}]))


def lines_problems(lines):
    """The last line is that of the frame, and each line before it that of an inlined
    function."""
    if not isinstance(lines, list) or not 0 < len(lines) <= 32:
        return ['lines of a frame are no list, or too many']
    found = [p for i, line in enumerate(lines) for p in fields_problems(
        line, 'a line', LINE_FIELDS if i < len(lines) - 1 else LINE_FIELDS - {'function'},
        {'function'} if i < len(lines) - 1 else set())]
    found += ['a text of a line is no text' for line in lines
              for name in ('function', 'file') if not is_text(line.get(name, 'absent'))]
    return found + ['a line is no number' for line in lines
                    if not is_int(line.get('line', 1)) or line.get('line', 1) <= 0]


def sample_shape_problems(sample, profile, sent):
    found = fields_problems(
        sample, 'a sample', SAMPLE_FIELDS | (set() if sent else
                                             FILE_SAMPLE_FIELDS),
        SAMPLE_FIELDS)
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
    # In a payload of running samples the first sample has the running state.
    off_cpu = ('waiting', 'ready')
    if sample.get('state', 'waiting') not in off_cpu and (
            sample['state'] != 'running' or sample is not profile['samples'][0]
            or any(s.get('state') in off_cpu for s in profile['samples'])):
        found.append(f'state {sample["state"]}')
    elif sample.get('state') in off_cpu and not found and \
            profile['stacks'][sample['stack_id']:][:1] == [[]]:
        found.append(f'an empty stack is {sample["state"]}')
    return found


def metadata_shape_problems(tid, data):
    found = fields_problems(data, f'thread {tid}', THREAD_FIELDS, {'name'})
    if not found and not isinstance(data['name'], str):
        found.append(f'the name of thread {tid} is no text')
    if not found and (not is_int(data.get('priority', 0)) or
                      data.get('priority', 0) < 0):
        found.append(f'the priority of thread {tid} is negative or no number')
    return found
