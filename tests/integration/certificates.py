"""Makes an authority and a server's certificate by the openssl command."""

import os
import re
import ssl
import subprocess


def openssl(*args):
    subprocess.run(['openssl', *args], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def make_context(directory, names, days):
    """Makes ca.pem, server.pem and server.key; returns a context with them.

    days: how long they are valid; with -1 they expired yesterday."""
    def path(name):
        return os.path.join(directory, name)

    new_key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
               '-nodes']
    openssl('req', '-x509', *new_key, '-days', '2',
            '-subj', '/CN=sentry-profd test authority',
            '-keyout', path('ca.key'), '-out', path('ca.pem'))
    openssl('req', *new_key, '-subj', '/CN=sentry-profd test server',
            '-keyout', path('server.key'), '-out', path('server.csr'))
    kinds = ['IP' if re.fullmatch(r'[\d.]+', n) else 'DNS' for n in names]
    with open(path('server.ext'), 'w') as f:
        f.write('subjectAltName=' +
                ','.join(f'{k}:{n}' for k, n in zip(kinds, names)) + '\n')
    openssl('x509', '-req', '-days', str(days), '-in', path('server.csr'),
            '-CA', path('ca.pem'), '-CAkey', path('ca.key'),
            '-CAcreateserial', '-extfile', path('server.ext'),
            '-out', path('server.pem'))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path('server.pem'), path('server.key'))
    return context
