/*
 * Whether a file holds certificates or keys in PEM (RFC 7468). The broker may
 * not link a library that reads them, and ship's reports what is wrong with
 * their content only when it connects to the server. So the lines BEGIN and END
 * alone are compared: they show a file of another kind, one that is cut off,
 * and a key that takes a passphrase.
 */
#ifndef DAEMON_CONFIG_PEM_H
#define DAEMON_CONFIG_PEM_H

/* A system's whole bundle has 220 kB, a certificate with its chain some. */
#define AUTHORITIES_BYTES_MAX (4u << 20)
#define CLIENT_BYTES_MAX      (256u << 10)

enum pem_result {
	PEM_OK,
	PEM_NONE,      /* no block of that kind */
	PEM_CUT_OFF,   /* a block without its END */
	PEM_ENCRYPTED, /* a key that takes a passphrase */
};

/*
 * Checks all blocks of text whose label ends with kind: "CERTIFICATE" or
 * "PRIVATE KEY". The first fault decides.
 */
enum pem_result pem_check(const char *text, const char *kind);

#endif
