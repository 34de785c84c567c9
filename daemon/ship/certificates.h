/*
 * Certificates and keys in PEM that ship uses for TLS: the authorities of ca_certs, and the
 * client certificate and its key. They are read at the start and at each reload.
 *
 * The broker opens the files with its own rights and passes descriptors, because ship has no
 * rights to open them.
 */
#ifndef DAEMON_SHIP_CERTIFICATES_H
#define DAEMON_SHIP_CERTIFICATES_H

#include "daemon/msg/msg.h"
#include "lib/base/buf.h"
#include "lib/ship/transport.h"

/* The bytes of the files; empty where the configuration names none. */
struct certificates {
	struct buf authorities;
	struct buf client;
	struct buf key; /* empty: the key is in client */
};

/*
 * Reads the files that came with MSG_INIT or MSG_CERTIFICATES. fds: the descriptors of the files,
 * indexed by enum init_file (daemon/msg/msg.h); -1: the configuration names no such file. The
 * descriptors stay the caller's. Returns 0, or -errno after a log line that names the key of the
 * configuration. Call certificates_fini() in either case.
 */
must_check int certificates_read(struct certificates *c, const int fds[INIT_FILE_N]);
/*
 * Returns the configuration key of a file without a complete PEM block, as during a renewal; NULL
 * if all files are good.
 */
const char *certificates_problem(const struct certificates *c);
/* Frees the bytes; those of the client certificate and key are zeroed first. */
void certificates_fini(struct certificates *c);

/* Sets the certificates in the options. They point into c. */
void certificates_set_options(const struct certificates *c, struct transport_options *ret);

#endif
