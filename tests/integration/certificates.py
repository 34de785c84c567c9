"""Makes an authority and a server's certificate by the openssl command."""

import os
import re
import ssl
import subprocess


def openssl(*args):
    subprocess.run(['openssl', *args], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']


def make_authority(directory):
    """Makes ca.pem and ca.key."""
    openssl('req', '-x509', *NEW_KEY, '-days', '2', '-subj', '/CN=sentry-profd test authority',
            '-keyout', f'{directory}/ca.key', '-out', f'{directory}/ca.pem')


def certify(context, directory, names, days):
    """Gives the context a new certificate by the authority: server.pem and server.key.

    days: how long it is valid; with -1 it expired yesterday."""
    def path(name):
        return os.path.join(directory, name)

    openssl('req', *NEW_KEY, '-subj', '/CN=sentry-profd test server',
            '-keyout', path('server.key'), '-out', path('server.csr'))
    kinds = ['IP' if re.fullmatch(r'[\d.]+', n) else 'DNS' for n in names]
    with open(path('server.ext'), 'w') as f:
        f.write('subjectAltName=' +
                ','.join(f'{k}:{n}' for k, n in zip(kinds, names)) + '\n')
    openssl('x509', '-req', '-days', str(days), '-in', path('server.csr'),
            '-CA', path('ca.pem'), '-CAkey', path('ca.key'),
            '-CAcreateserial', '-extfile', path('server.ext'),
            '-out', path('server.pem'))
    context.load_cert_chain(path('server.pem'), path('server.key'))


def make_context(directory, names, days):
    """Makes an authority, and a context with a certificate by it."""
    make_authority(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certify(context, directory, names, days)
    return context
