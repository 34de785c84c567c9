"""Parses envelopes, and finds what the daemon's clients must not send. As
strict as Sentry or stricter. Used by server.py and by tests.
"""

import json
import re

KEY = '0123456789abcdef0123456789abcdef'
PROJECT = '42'
SDK = 'sentry.native.profd'
# Members that only files have: docs/FORMATS.md.
FOR_FILES = re.compile(rb',"state":"(?:waiting|ready|running)"|,"ready_known":true|'
                       rb',"code_id":"[0-9a-f]*"|,"symbols":"[a-z]*"|'
                       rb',"lines":\[\{(?:[^"\]]|"(?:[^"\\]|\\.)*")*\]')
SAMPLES = re.compile(rb'"samples":\[(.*?)\],"thread_metadata"', re.S)
VERSION = r'\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?'


def read_envelope(data):
    """Returns the header and [(item header, payload bytes)].

    Raises ValueError with what is wrong.
    """
    line, end, rest = data.partition(b'\n')
    if not end:
        raise ValueError('the envelope has no header line')
    header = read_line(line, 'envelope header')
    items = []
    while rest:
        line, end, rest = rest.partition(b'\n')
        item = read_line(line, 'item header')
        length = item.get('length')
        if type(length) is not int:
            raise ValueError('an item has no length')
        if len(rest) < length + 1 or rest[length:length + 1] != b'\n':
            raise ValueError('a payload does not end where length says')
        items.append((item, rest[:length]))
        rest = rest[length + 1:]
    return header, items


def separates_states(before, sample, after):
    """Returns true if the sample only separates a ready time from a wait: its
    thread's samples before and after it have the same stack, too."""
    states = [s.get('state', 'running') for s in (before, sample, after)]
    return before['stack_id'] == sample['stack_id'] == after['stack_id'] and \
        'running' not in states and len(set(states)) > 1


def samples_for_server(samples, sent=()):
    """Returns the samples of a file without those that are only for files. sent: the samples that
    the server has. Of a thread that exits it needs one at the tick before, even if that separates
    states; a file does not tell an exit from the end of the chunk."""
    by_thread, dropped = {}, set()
    had = {(s['thread_id'], s['timestamp']) for s in sent}
    for n, sample in enumerate(samples):
        by_thread.setdefault(sample['thread_id'], []).append(n)
    for of in by_thread.values():
        dropped |= {b for a, b, c in zip(of, of[1:], of[2:])
                    if separates_states(*(samples[n] for n in (a, b, c)))}
        if len(of) > 1 and tuple(samples[of[-2]][k] for k in ('thread_id', 'timestamp')) in had:
            dropped.discard(of[-2])
    return [s for n, s in enumerate(samples) if n not in dropped]


def for_server(payload, sent=()):
    """Returns the payload that the server would get instead of one that was
    written to a file. sent: as of samples_for_server()."""
    def kept(match):
        samples = samples_for_server(json.loads(b'[' + match[1] + b']'), sent)
        return match[0].replace(match[1], b','.join(
            json.dumps(s, separators=(',', ':')).encode() for s in samples))
    if b'"state":"ready"' in payload:
        payload = SAMPLES.sub(kept, payload)
    return FOR_FILES.sub(b'', payload)


def read_line(line, what):
    try:
        value = json.loads(line)
    except ValueError as e:
        raise ValueError(f'the {what} is not JSON') from e
    if not isinstance(value, dict):
        raise ValueError(f'the {what} is no object')
    compact = json.dumps(value, separators=(',', ':'), ensure_ascii=False)
    if compact.encode() != line:
        raise ValueError(f'the {what} is not compact JSON')
    return value


def envelope_problems(data, client, for_files=False):
    try:
        header, items = read_envelope(data)
    except ValueError as e:
        return [str(e)], []
    problems = []
    if not re.fullmatch('[0-9a-f]{32}', str(header.get('event_id'))):
        problems.append('event_id is not 32 hex digits')
    if not re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z',
                        str(header.get('sent_at'))):
        problems.append('sent_at is not RFC 3339 in UTC')
    sdk = header.get('sdk')
    if not isinstance(sdk, dict) or \
            f'{sdk.get("name")}/{sdk.get("version")}' != client:
        problems.append('sdk is not the one that sends')
    if not items:
        problems.append('the envelope is empty')
    chunks = [i for i in items if i[0].get('type') == 'profile_chunk']
    if len(chunks) > 1:
        problems.append('more than one profile_chunk')
    for item, payload in chunks:
        problems += chunk_problems(item, payload, for_files)
    return problems, [item for item, _ in items]


def chunk_problems(item, payload, for_files):
    problems = []
    if item.get('content_type') != 'application/json':
        problems.append('content_type is not application/json')
    try:
        chunk = json.loads(payload)
    except ValueError:
        return problems + ['the chunk is not JSON']
    if not isinstance(chunk, dict) or \
            chunk.get('platform') != item.get('platform'):
        problems.append("the item's platform is not the chunk's")
    if not for_files and for_server(payload) != payload:
        problems.append('the chunk has members that are for files')
    return problems


def header_problems(headers, path):
    problems = []
    if not re.fullmatch(rf'(/[\w./-]+)?/api/{PROJECT}/envelope/', path):
        problems.append('the path is not /api/PROJECT/envelope/')
    client = headers.get('user-agent', '')
    if not re.fullmatch(re.escape(SDK) + '/' + VERSION, client):
        problems.append('User-Agent is not NAME/VERSION')
    auth = re.fullmatch('Sentry sentry_version=7, sentry_client=([^ ,]+), '
                        'sentry_key=([^ ,]+)(, sentry_secret=[^ ,]+)?',
                        headers.get('x-sentry-auth', ''))
    if not auth:
        problems.append('X-Sentry-Auth is malformed or absent')
    else:
        if auth[1] != client:
            problems.append('sentry_client is not User-Agent')
        if auth[2] != KEY:
            problems.append('sentry_key is not the key')
    if headers.get('content-type') != 'application/x-sentry-envelope':
        problems.append('Content-Type is not application/x-sentry-envelope')
    if headers.get('content-encoding') not in ('gzip', 'zstd'):
        problems.append('Content-Encoding is neither gzip nor zstd')
    if 'expect' in headers:
        problems.append('there is an Expect header')
    return problems


def spotlight_problems(headers, path):
    problems = []
    if path != '/stream':
        problems.append('the path is not /stream')
    if 'x-sentry-auth' in headers or 'authorization' in headers:
        problems.append('there is a key')
    if headers.get('content-type') != 'application/x-sentry-envelope':
        problems.append('Content-Type is not application/x-sentry-envelope')
    if headers.get('content-encoding') != 'gzip':
        problems.append('Content-Encoding is not gzip')
    if 'expect' in headers:
        problems.append('there is an Expect header')
    return problems
