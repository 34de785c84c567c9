"""How the server computes times from samples."""

import collections


def by_thread(profile):
    """Returns {thread_id: its samples in order}."""
    threads = collections.defaultdict(list)
    for s in profile['samples']:
        threads[s['thread_id']].append(s)
    return threads


class Bar:
    """A stack of a thread, and how long it lasts. names: innermost first."""

    def __init__(self, chunk, sample, seconds):
        profile = chunk['profile']
        self.thread = sample['thread_id']
        self.start = sample['timestamp']
        self.seconds = seconds
        self.frames = [profile['frames'][f]
                       for f in profile['stacks'][sample['stack_id']]]
        self.names = [f.get('function') for f in self.frames]


def bars(chunk):
    """Returns the bars of a chunk. A sample lasts until the thread's next one; a sample
    without a stack is idle time, and makes no bar."""
    result = []
    for samples in by_thread(chunk['profile']).values():
        for s, following in zip(samples, samples[1:]):
            bar = Bar(chunk, s, following['timestamp'] - s['timestamp'])
            if bar.frames:
                result.append(bar)
    return result


def thread_seconds(chunk):
    """Returns {thread_id: seconds with a stack}."""
    seconds = collections.Counter()
    for bar in bars(chunk):
        seconds[bar.thread] += bar.seconds
    return seconds


def thread_ids(chunk, name):
    return [tid for tid, data in
            chunk['profile']['thread_metadata'].items()
            if data['name'] == name]
