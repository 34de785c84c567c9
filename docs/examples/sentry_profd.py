"""Links the transactions of a Python program to the profiles of sentry-profd.

    import sentry_profd, sentry_sdk

    sentry_profd.install()
    sentry_sdk.init(dsn=..., traces_sample_rate=...,
                    before_send_transaction=sentry_profd.before_send_transaction)

SDKs before 1.14 have no before_send_transaction; use this instead:

    sentry_sdk.scope.add_global_event_processor(
        sentry_profd.before_send_transaction)

The section of the program in sentry-profd.conf(5) needs

    profile_lifecycle = trace
    thread_id_format = pthread

since the SDK and threading.get_ident() use pthread_self(). With profile_lifecycle =
manual, call start_profiler() and stop_profiler().

Without a daemon the calls have no effect; a daemon that starts later is found. After a
fork (gunicorn's workers) each process has a connection of its own.
"""

import ctypes
import json

import sentry_sdk

JSON_SIZE = 256

_library = None
# Link data of open transactions and spans, by span_id.
_roots = {}
_spans = {}


def load(path='libsentry_profd.so.0'):
    """Loads the library, and declares the types of sentry_profd.h."""
    library = ctypes.CDLL(path)
    library.sentry_profd_connect.argtypes = [ctypes.c_char_p]
    library.sentry_profd_wait.argtypes = [ctypes.c_int]
    library.sentry_profd_root_span_begin.argtypes = [ctypes.c_int]
    library.sentry_profd_root_span_begin.restype = ctypes.c_uint64
    library.sentry_profd_root_span_end.argtypes = [ctypes.c_uint64]
    library.sentry_profd_root_span_end.restype = None
    library.sentry_profd_release.argtypes = [ctypes.c_uint]
    for name in ('profile_context', 'trace_data', 'span_data'):
        function = getattr(library, 'sentry_profd_' + name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library


def start_profiler():
    return _library.sentry_profd_start_profiler()


def stop_profiler():
    return _library.sentry_profd_stop_profiler()


def release(seconds=0):
    """Lets another process trace this one (gdb, py-spy) for so long, or 30 seconds.
    Returns 0 or a negative errno."""
    return _library.sentry_profd_release(seconds)


def _json(name):
    """Returns a JSON object of the library, or {} if it has none."""
    text = ctypes.create_string_buffer(JSON_SIZE)
    function = getattr(_library, 'sentry_profd_' + name)
    return json.loads(text.value) if function(text, JSON_SIZE) > 0 else {}


def _begin(transaction):
    sampled = bool(transaction.sampled)
    token = _library.sentry_profd_root_span_begin(sampled)
    if sampled:
        _roots[transaction.span_id] = token, _json('trace_data')


def _end(transaction):
    token, _ = _roots.pop(transaction.span_id, (0, None))
    _library.sentry_profd_root_span_end(token)


def install(library='libsentry_profd.so.0', socket=None, wait_ms=0):
    """Connects to the daemon, and hooks into the SDK's transactions and spans.

    socket: the path of the daemon's socket; None means $SENTRY_PROFD_SOCKET or the
    default. wait_ms: how long to wait for the daemon's answer, so that the first
    transaction is linked, too.
    """
    global _library
    _library = load(library)
    _library.sentry_profd_connect(socket and str(socket).encode())
    if wait_ms:
        _library.sentry_profd_wait(wait_ms)

    Span = sentry_sdk.tracing.Span
    Transaction = sentry_sdk.tracing.Transaction
    enter_span, finish_span = Span.__enter__, Span.finish
    enter, finish = Transaction.__enter__, Transaction.finish

    # The sampling decision is known when the transaction is entered.
    def transaction_enter(self):
        _begin(self)
        return enter(self)

    # finish() sends the transaction, and calls before_send_transaction.
    def transaction_finish(self, *args, **options):
        try:
            return finish(self, *args, **options)
        finally:
            _end(self)

    # A span may be on another thread than its transaction.
    def span_enter(self):
        if self.sampled and self.span_id not in _roots:
            _spans[self.span_id] = _json('span_data')
        return enter_span(self)

    def span_finish(self, *args, **options):
        for key, value in _spans.pop(self.span_id, {}).items():
            self.set_data(key, value)
        return finish_span(self, *args, **options)

    Span.__enter__, Span.finish = span_enter, span_finish
    Transaction.__enter__ = transaction_enter
    Transaction.finish = transaction_finish


def before_send_transaction(event, hint):
    """Adds the profiler id and the threads, so that Sentry finds the profile."""
    if _library is None or event.get('type') != 'transaction':
        return event
    contexts = event.setdefault('contexts', {})
    trace = contexts.get('trace', {})
    _, trace_data = _roots.get(trace.get('span_id'), (0, None))
    profile = _json('profile_context')
    if trace_data and profile:
        contexts['profile'] = profile
        trace['data'] = {**(trace.get('data') or {}), **trace_data}
        for span in event.get('spans', ()):
            data = span.setdefault('data', {})
            data.setdefault('thread.id', trace_data['thread.id'])
    return event
