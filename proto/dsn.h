/*
 * A DSN: where envelopes go and with which key.
 *
 *     {scheme}://{public_key}[:{secret}]@{host}[:port]{/path}/{project_id}
 *
 * Source: Sentry's SDK development documentation, "Overview", "Parsing the
 * DSN". Needs libc only: the broker, which links nothing else, checks the
 * user's DSN with it before anything starts.
 *
 * The keys are for the server alone: for a log there are dsn_endpoint and
 * dsn_label, which do not contain them, and dsn_result_text, which quotes
 * nothing.
 */
#ifndef PROTO_DSN_H
#define PROTO_DSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Sizes with the NUL. A DSN of Sentry's has about 100 bytes, its key 32 hex
 * digits (64 with older servers), its project a decimal number; a host name
 * has 253 bytes at most (RFC 1035).
 */
#define DSN_SIZE	 1024
#define DSN_KEY_SIZE	 129
#define DSN_HOST_SIZE	 256
#define DSN_PATH_SIZE	 513
#define DSN_PROJECT_SIZE 65

/* All parts at their longest, and what is written around them. */
#define DSN_ENDPOINT_SIZE 1024
#define DSN_AUTH_SIZE	  512
#define DSN_LABEL_SIZE	  (DSN_HOST_SIZE + 6 + DSN_PROJECT_SIZE)

struct dsn {
	bool https;    /* else http */
	uint16_t port; /* 0: the scheme's own */
	char public_key[DSN_KEY_SIZE];
	char secret[DSN_KEY_SIZE];	/* "": none, as it should be */
	char host[DSN_HOST_SIZE];	/* IPv6: with its brackets */
	char path[DSN_PATH_SIZE];	/* "" or "/prefix", no slash at the end */
	char project[DSN_PROJECT_SIZE]; /* "", as the key: dsn_parse_url */
};

enum dsn_result {
	DSN_OK,
	DSN_EMPTY, /* not an error: nothing is to be sent, with a warning */
	DSN_TOO_LONG,
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
 * Parses text. *ret is written with DSN_OK only; then no part contains a
 * character that could end a URL, a path segment, a header, or a field of the
 * X-Sentry-Auth header. Keys, path and project consist of RFC 3986's
 * unreserved characters; a host is ASCII (an international name in its xn--
 * form) or an IPv6 address in brackets without a zone.
 */
enum dsn_result dsn_parse(struct dsn *ret, const char *text) __attribute__((warn_unused_result));

/*
 * A URL without keys, {scheme}://{host}[:port]{/path}, for a server that asks
 * for none (Spotlight). public_key and project become "", dsn_endpoint gives
 * the URL. The rules of dsn_parse hold for its parts: no user, no query.
 */
enum dsn_result dsn_parse_url(struct dsn *ret, const char *text)
	__attribute__((warn_unused_result));

/*
 * What is wrong, for the user, without a full stop: "the DSN has no public
 * key: expected https://KEY@HOST/PROJECT". A literal; "" for DSN_OK.
 */
const char *dsn_result_text(enum dsn_result result);

/*
 * The URL to post envelopes to:
 * {scheme}://{host}{path}/api/{project}/envelope/; without a project
 * {scheme}://{host}{path}. Returns 0, or -E2BIG if size is too small (never
 * with DSN_ENDPOINT_SIZE).
 */
int dsn_endpoint(const struct dsn *dsn, char *ret, size_t size) __attribute__((warn_unused_result));

/*
 * For a person, with the port in any case: {host}:{port}/{project}; without a
 * project {host}:{port}.
 */
void dsn_label(const struct dsn *dsn, char ret[DSN_LABEL_SIZE]);

/*
 * The value of the X-Sentry-Auth header. client is NAME/VERSION, up to 64
 * bytes, fit for a header. Returns 0, or -E2BIG if size is too small (never
 * with DSN_AUTH_SIZE).
 */
int dsn_auth(const struct dsn *dsn, const char *client, char *ret, size_t size)
	__attribute__((warn_unused_result));

/*
 * Tells the DSNs of a host apart, and does not give them away. The same in
 * every run, and of all texts that name one place: a secret is nothing that a
 * server asks for any more.
 */
uint64_t dsn_number(const struct dsn *dsn);

#endif
