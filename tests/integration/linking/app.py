"""A server as that of docs/examples/sentry_native.c, in Python with sentry_sdk:
a request is two lines. Arguments: the library, the DSN."""

import sys

import sentry_profd
import sentry_sdk
from sentry_sdk.consts import DEFAULT_OPTIONS

library, dsn = sys.argv[1:]
options = {}
sentry_profd.install(library, wait_ms=60000)
if 'before_send_transaction' in DEFAULT_OPTIONS:
    options['before_send_transaction'] = sentry_profd.before_send_transaction
else:
    sentry_sdk.scope.add_global_event_processor(
        sentry_profd.before_send_transaction)


def sample(context):
    name = context['transaction_context']['name']
    return 0.0 if name.startswith('/alive') else 1.0


sentry_sdk.init(dsn=dsn, traces_sampler=sample, **options)
print('ready', flush=True)
while True:
    name = sys.stdin.readline().strip()
    if not name:
        break
    with sentry_sdk.start_transaction(op='server', name=name) as transaction:
        with transaction.start_child(op='read', description='what to do'):
            sys.stdin.readline()
    sentry_sdk.flush()
    print('done', flush=True)
