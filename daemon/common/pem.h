/*
 * Checks whether a text holds certificates or keys in PEM (RFC 7468). The broker checks the files
 * of the configuration when it reads the configuration, and ship checks each file before its use.
 *
 * Only the lines BEGIN and END are compared, since the broker must not link a library that parses
 * certificates, and ship's library finds a broken file only when it connects. These lines show
 * a file of another kind, a file that is cut off, and a key with a passphrase.
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
 * Checks all blocks of text whose label ends with kind, which is "CERTIFICATE" or "PRIVATE KEY".
 * text ends with a NUL. Returns PEM_OK, or the first fault.
 */
enum pem_result pem_check(const char *text, const char *kind);

#endif
