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

/* The bytes of the files. A buffer is empty if the configuration does not have its key. */
struct certificates {
	struct buf authorities; /* the file of ca_certs */
	struct buf client;	/* the file of client_cert */
	struct buf key;		/* the file of client_key; empty: the key is in client */
};

/*
 * Reads the files that came with MSG_INIT or MSG_CERTIFICATES into an uninitialised c. fds: their
 * descriptors by enum init_file (daemon/msg/msg.h), which stay the caller's; -1: the configuration
 * names no such file. Returns 0; -E2BIG if a file is too large (MSG_*_BYTES_MAX); -ENOMEM; or an
 * error of pread(2). Logs an error. The caller calls certificates_fini() also after an error.
 */
must_check int certificates_read(struct certificates *c, const int fds[INIT_FILE_N]);
/*
 * Returns NULL if each file has a complete PEM block of its kind. Otherwise returns the
 * configuration key of the first file without one, for example because it is just being written.
 */
const char *certificates_problem(const struct certificates *c);
/* Frees the bytes; those of the client certificate and key are zeroed first. */
void certificates_fini(struct certificates *c);

/* Sets the certificates and the key that c has in the options, which then point into c. */
void certificates_set_options(const struct certificates *c, struct transport_options *ret);

#endif
