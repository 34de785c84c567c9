/*
 * Certificates and keys in PEM that ship uses for TLS: the authorities that may sign the server's
 * certificate, and ship's own certificate with its key. ship reads the files at its start and at
 * each reload of the configuration.
 *
 * The broker opens the files and passes descriptors, because ship has no rights to open them.
 */
#ifndef DAEMON_SHIP_CERTIFICATES_H
#define DAEMON_SHIP_CERTIFICATES_H

#include "daemon/msg/msg.h"
#include "lib/base/buf.h"
#include "lib/ship/transport.h"

/* The bytes of the files, by option. A buffer is empty if its option is not set, or its file is. */
struct certificates {
	struct buf authorities; /* option ca_certs */
	struct buf client;	/* option client_cert */
	struct buf key;		/* option client_key; empty: the private key is in client */
	const char *empty;	/* an option whose file is empty; NULL: none */
};

/*
 * Initialises c, and reads the files into it. fds has their descriptors, which came with MSG_INIT
 * or MSG_CERTIFICATES, by enum init_file (daemon/msg/msg.h); -1: the option is not set. The
 * descriptors stay the caller's. Returns 0; -E2BIG if a file is too large (MSG_*_BYTES_MAX);
 * -ENOMEM; or an error of pread(2). Logs the error. Call
 * certificates_fini() also after an error.
 */
must_check int certificates_read(struct certificates *c, const int fds[INIT_FILE_N]);
/*
 * Checks for complete PEM blocks, since a file may be just being written. Returns NULL, or the name
 * of an option whose file is empty, or of the first option whose block is missing or incomplete:
 * - "ca_certs", if this option is set: a certificate in its file;
 * - "client_cert", if this option is set: a certificate in its file;
 * - "client_key", if client_cert is set: a private key in the file of client_key, or in that of
 *   client_cert if client_key is not set.
 */
const char *certificates_problem(const struct certificates *c);
/* Frees the bytes; those of the client certificate and key are zeroed first. */
void certificates_fini(struct certificates *c);

/*
 * Sets the members of *ret for what c has: the authorities, and the client certificate with its
 * key, which may be in the same file. They point into c. Leaves the other members.
 */
void certificates_set_options(const struct certificates *c, struct transport_options *ret);

#endif
