/*
 * Checks whether a text holds certificates or keys in PEM (RFC 7468). The broker checks the files
 * of the configuration when it reads the configuration, and ship checks each file before its use.
 *
 * This module reads only the lines BEGIN and END, and the header of an encrypted key. So it finds a
 * file of another kind, a file that is cut off, and a key with a passphrase, but no wrong bytes
 * within a block. Reason: the broker must not link a library that parses certificates, and ship's
 * library finds a broken file only when ship connects.
 */
#ifndef DAEMON_COMMON_PEM_H
#define DAEMON_COMMON_PEM_H

enum pem_result {
	PEM_OK,
	PEM_NONE,      /* no block of that kind */
	PEM_CUT_OFF,   /* a block without its END */
	PEM_ENCRYPTED, /* a key with a passphrase */
};

/*
 * Checks all blocks of text whose label (between "-----BEGIN " and "-----") ends with kind, which
 * is "CERTIFICATE" or "PRIVATE KEY". text ends with a NUL. Returns PEM_OK, or the first fault.
 */
enum pem_result pem_check(const char *text, const char *kind);

#endif
