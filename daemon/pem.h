/*
 * Is a file what it shall be? For who may not link a library that reads
 * certificates, and is to tell of a wrong one before ship's does. Only the
 * shape is looked at (RFC 7468): blocks of base64 of one DER sequence each.
 */
#ifndef DAEMON_PEM_H
#define DAEMON_PEM_H

#include <stddef.h>

enum pem_result {
	PEM_OK,
	PEM_NONE,      /* no block of that kind */
	PEM_BROKEN,    /* one that has no end, or is not whole */
	PEM_ENCRYPTED, /* one that takes a passphrase */
};

/*
 * All blocks whose label ends with kind: "CERTIFICATE", "PRIVATE KEY". The
 * first that is not well decides.
 */
enum pem_result pem_check(const char *text, size_t n, const char *kind);

#endif
