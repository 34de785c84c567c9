#!/usr/bin/python3
"""The address of a frame: its own, or that of its function (the key
addresses)."""

import chunk_rules
import harness
from harness import check
from layout import Layout


def profile(box, target, *options, **how):
    """Returns the chunks of a run, after checking them."""
    layout = Layout(target.pid)
    by_function = how.pop('by_function')
    platform = how.pop('platform', 'rust')
    server = how.pop('server', None)
    if server:
        options += ('--dsn', server.dsn)
        how.update(output=False, env=server.env)
    if platform != 'rust':
        options += ('--platform', platform)
    profd = box.profile([target], *options, work=1, **how)
    envelopes = server.envelopes if server else profd.envelopes
    check(envelopes, 'no envelope')
    for e in envelopes:
        # Names that are made for people differ from those of the file.
        found = chunk_rules.problems(
            e, layout if platform == 'rust' else None, sent=bool(server),
            platform=platform, by_function=by_function)
        check(found == [], f'{found[:5]}')
    return [e.chunk for e in envelopes]


def addresses(chunks, name):
    return {f['instruction_addr'] for c in chunks
            for f in c['profile']['frames'] if name in f.get('function', '')}


def test_one_frame_for_a_function(box):
    """All addresses of a function are one frame: as leaf or caller, with a
    symbol or without."""
    target = box.target('threads')
    exact = profile(box, target, by_function=False)
    function = profile(box, target, '--addresses', 'function', by_function=True)
    for name in ('TreeJob3run', 'Pool4work'):
        check(len(addresses(exact, name)) > 1, f'{exact}')
        check(len(addresses(function, name)) == 1, f'{function}')


def test_what_auto_is(box):
    """With auto, addresses are by function in payloads that the server shows
    as they are, and in no others."""
    target = box.target('threads')
    name = 'TreeJob'
    for by_function, options in (
            (True, {'platform': 'native', 'server': box.server()}),
            (False, {'platform': 'rust', 'server': box.server()}),
            # Local files.
            (False, {'platform': 'native'})):
        chunks = profile(box, target, by_function=by_function, **options)
        found = addresses(chunks, name)
        check((len(found) == 1) == by_function, f'{options}: {found}')
    server = box.server()
    box.profile([target], '--symbols', 'lines', '--platform', 'native', '--dsn',
                server.dsn, output=False, env=server.env, work=1)
    check(len(addresses(server.chunks, name)) > 1,
          'with lines addresses are exact')


if __name__ == '__main__':
    harness.main(globals())
