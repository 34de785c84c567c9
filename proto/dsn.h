/*
 * Parses a DSN, the address of a Sentry project with its public key, and makes what is needed to
 * send to it: URL, authentication header, name for logs, and a hash for file names.
 *
 *     {scheme}://{public_key}[:{secret}]@{host}[:port]{/path}/{project_id}
 *
 * The broker checks the DSN when it reads the configuration; ship sends to the DSN's server. This
 * module needs libc only, because the broker links nothing else.
 *
 * Source: Sentry's SDK development documentation, "Overview", "Parsing the DSN".
 *
 * Keys must not be logged: use dsn_endpoint() or dsn_label(), which leave them out, and
 * dsn_result_text(), which quotes nothing of the DSN.
 */
#ifndef PROTO_DSN_H
#define PROTO_DSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sizes with the NUL. A DSN has about 100 bytes; its key has 32 hexadecimal digits (64 with older
 * servers), its project is a decimal number. A host name has at most 253 bytes (RFC 1035).
 */
#define DSN_SIZE	 1024
#define DSN_KEY_SIZE	 129
#define DSN_HOST_SIZE	 256
#define DSN_PATH_SIZE	 513
#define DSN_PROJECT_SIZE 65

/* Sizes of the texts that are made of a DSN, with the NUL. */
#define DSN_ENDPOINT_SIZE 1024
#define DSN_AUTH_SIZE	  512
#define DSN_LABEL_SIZE	  (DSN_HOST_SIZE + 6 + DSN_PROJECT_SIZE)

struct dsn {
	bool https;    /* else http */
	uint16_t port; /* 0: the default of the scheme */
	char public_key[DSN_KEY_SIZE];
	char secret[DSN_KEY_SIZE];	/* "": none; modern DSNs have none */
	char host[DSN_HOST_SIZE];	/* an IPv6 address has its brackets */
	char path[DSN_PATH_SIZE];	/* "" or "/prefix", no slash at the end */
	char project[DSN_PROJECT_SIZE]; /* "" after dsn_parse_url */
};

enum dsn_result {
	DSN_OK,
	DSN_EMPTY,    /* the text is empty: this may be intended, but nothing can be sent */
	DSN_TOO_LONG, /* the text has DSN_SIZE bytes or more; a part that is too long: DSN_BAD_* */
	DSN_BAD_SCHEME,
	DSN_NO_KEY,
	DSN_BAD_KEY,
	DSN_BAD_SECRET,
	DSN_NO_HOST,
	DSN_BAD_HOST,
	DSN_BAD_PORT,
	DSN_BAD_PATH,
	DSN_NO_PROJECT,
	DSN_BAD_PROJECT,
};

/*
 * Parses text. Writes *ret only if the result is DSN_OK. Then keys and project consist of the
 * unreserved characters of RFC 3986, and the path of the same characters and slashes. The host is
 * an ASCII name (an international name in its xn-- form), an IPv4 address, or an IPv6 address in
 * brackets without a zone. So no part can end a URL, a header or a field of X-Sentry-Auth.
 */
enum dsn_result dsn_parse(struct dsn *ret, const char *text) __attribute__((warn_unused_result));

/*
 * Parses a URL without keys, {scheme}://{host}[:port]{/path}, of a server that needs no keys
 * (Spotlight). public_key, secret and project become "". dsn_endpoint() then returns the URL. The
 * rules and results are those of dsn_parse(); a user or a query in the URL is an error.
 */
enum dsn_result dsn_parse_url(struct dsn *ret, const char *text)
	__attribute__((warn_unused_result));

/*
 * Returns a message for the user, such as "the DSN has no public key: expected
 * https://KEY@HOST/PROJECT": a literal; "" for DSN_OK.
 */
const char *dsn_result_text(enum dsn_result result);

/*
 * Writes the URL that envelopes are posted to. With a project:
 * {scheme}://{host}[:port]{path}/api/{project}/envelope/; without: {scheme}://{host}[:port]{path}.
 * Returns 0, or -E2BIG if size is too small (DSN_ENDPOINT_SIZE is always enough).
 */
int dsn_endpoint(const struct dsn *dsn, char *ret, size_t size) __attribute__((warn_unused_result));

/*
 * Writes a name of the server and project for logs and status: {host}:{port}/{project}, or
 * {host}:{port} without a project. The port is always there.
 */
void dsn_label(const struct dsn *dsn, char ret[DSN_LABEL_SIZE]);

/*
 * Replaces the key and the secret by asterisks wherever they stand in the text. Call it for a text
 * from a server before logging the text, because the server knows the keys and can quote them. Does
 * not hide keys of less than DSN_KEY_HIDDEN_MIN bytes: so short a key is no secret, and could be a
 * part of any word.
 */
#define DSN_KEY_HIDDEN_MIN 8
void dsn_hide_keys(const struct dsn *dsn, char *text);

/*
 * Writes the value of the X-Sentry-Auth header. dsn must not be from dsn_parse_url(), because it
 * then has no key. client: NAME/VERSION, at most 64 bytes, without characters that a header cannot
 * have. Returns 0, or -E2BIG if size is too small (DSN_AUTH_SIZE is always enough).
 */
int dsn_auth(const struct dsn *dsn, const char *client, char *ret, size_t size)
	__attribute__((warn_unused_result));

/*
 * Returns a hash that identifies the DSN in file names and messages without revealing the DSN. A
 * DSN has the same hash in every run. The secret does not count, because servers do not check
 * secrets any more.
 */
uint64_t dsn_hash(const struct dsn *dsn);
/* Parses text, and returns the hash of the DSN; 0 if text is not a DSN. */
uint64_t dsn_hash_of_text(const char *text);

#endif
