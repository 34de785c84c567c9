"""Links the transactions of a Python program to the profiles of sentry-profd.

    import sentry_profd, sentry_sdk

    sentry_profd.install()
    sentry_sdk.init(dsn=..., traces_sample_rate=...,
                    before_send_transaction=sentry_profd.before_send_transaction)

An SDK of before 1.14 has no before_send_transaction: there

    sentry_sdk.scope.add_global_event_processor(
        sentry_profd.before_send_transaction)

does the same. The target's section in sentry-profd.conf(5) says

    profile_lifecycle = trace
    thread_id_format = pthread

since that is how the SDK, and threading.get_ident(), call threads. With
profile_lifecycle = manual, start_profiler() and stop_profiler() say when.

All of it works without a daemon, too, and with one that comes later; after a
fork (gunicorn's workers) each process speaks for itself.
"""

import ctypes
import json

import sentry_sdk

JSON_SIZE = 256

_library = None
# Of transactions and spans that are open, by span_id: what links them.
_roots = {}
_spans = {}


def load(path='libsentry_profd.so.0'):
    """The library, with the types of sentry_profd.h."""
    library = ctypes.CDLL(path)
    library.sentry_profd_connect.argtypes = [ctypes.c_char_p]
    library.sentry_profd_wait.argtypes = [ctypes.c_int]
    library.sentry_profd_root_span_begin.argtypes = [ctypes.c_int]
    library.sentry_profd_root_span_begin.restype = ctypes.c_uint64
    library.sentry_profd_root_span_end.argtypes = [ctypes.c_uint64]
    library.sentry_profd_root_span_end.restype = None
    for name in ('profile_context', 'trace_data', 'span_data'):
        function = getattr(library, 'sentry_profd_' + name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library


def start_profiler():
    return _library.sentry_profd_start_profiler()


def stop_profiler():
    return _library.sentry_profd_stop_profiler()


def _json(name):
    """One of the library's objects; {} if there is none."""
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
    """Connects, and watches the SDK's transactions and spans from now on.

    socket: a path; None: $SENTRY_PROFD_SOCKET, or the usual one. wait_ms: how
    long to wait for a daemon that is there, so that the very first transaction
    is linked as well.
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

    # Their sampling is decided when they are entered.
    def transaction_enter(self):
        _begin(self)
        return enter(self)

    # Sent in here, and so is before_send_transaction called.
    def transaction_finish(self, *args, **options):
        try:
            return finish(self, *args, **options)
        finally:
            _end(self)

    # On its own thread, which need not be the transaction's.
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
    """Puts in what Sentry finds the profile by."""
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
