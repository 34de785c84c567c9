/*
 * Posts envelopes to a server over HTTP(S), by libcurl: one request at a time
 * on a connection that is kept open between them.
 *
 * Never blocks but in transport_wait: the caller goes on with other work while
 * a request is under way. It does not retry, keep limits, or judge a status:
 * it says what the server answered, or that it did not.
 *
 * Certificate and host name are always verified, redirects are not followed
 * (they would carry the key to who knows where), no protocol but http and
 * https is spoken. libcurl itself reads http_proxy, https_proxy, all_proxy and
 * no_proxy in the environment, and looks up names on a thread of its own.
 */
#ifndef LIB_SHIP_TRANSPORT_H
#define LIB_SHIP_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/ship/compression.h"
#include "proto/dsn.h"

struct transport;

struct transport_options {
	const char *client; /* NAME/VERSION: in User-Agent and X-Sentry-Auth */
	/*
	 * Certificates in PEM of authorities to trust besides the system's;
	 * not needed after transport_new. NULL: none.
	 */
	const char *authorities;
	size_t authorities_size;
	/* To be shown to the server, with its key; PEM, as above. */
	const char *client_cert;
	size_t client_cert_size;
	const char *client_key;
	size_t client_key_size;
	long connect_timeout_ms; /* name, connection and TLS */
	long total_timeout_ms;
};

/* Why there was no answer. */
enum transport_fault {
	TRANSPORT_FAULT_OTHER,
	TRANSPORT_FAULT_CONNECT, /* the name is not found, or no connection */
	TRANSPORT_FAULT_PROXY,	 /* the same of a proxy, or it refuses */
	TRANSPORT_FAULT_TLS,	 /* certificates, keys, versions of TLS */
	TRANSPORT_FAULT_N
};

/* What came of a request. Texts are valid until the next one or the end. */
struct transport_answer {
	int status;		    /* HTTP's, 200 or more; 0: there was no answer */
	enum transport_fault fault; /* with status 0 */
	const char *error;	    /* why there was none; else NULL */
	/* Headers of the answer, NULL where absent. The server's bytes. */
	const char *rate_limits;  /* X-Sentry-Rate-Limits, joined by commas */
	const char *retry_after;  /* Retry-After */
	const char *sentry_error; /* X-Sentry-Error */
	/* Retry-After and Date as seconds since 1970; 0: it is no date. */
	int64_t retry_date_s, date_s;
};

/*
 * Initializes libcurl. Reads the system's authorities if it has to put others
 * beside them. Returns 0 or -ENOMEM.
 */
must_check int transport_new(struct transport **ret, const struct transport_options *o);
/*
 * From the next request on, which makes a new connection: o's certificates, for
 * all that there were before; its other members are ignored. Not while busy.
 * Returns 0 or -ENOMEM: then the next request may have a part of each.
 */
must_check int transport_set_certificates(struct transport *t, const struct transport_options *o);
/* Ends what is under way. Takes NULL. */
void transport_free(struct transport *t);

/*
 * Where the next requests go, and how their bodies are compressed. With a DSN
 * that is a URL alone (dsn_parse_url) requests have no X-Sentry-Auth, and use
 * no proxy: it is for a server on this machine, or beside it. Not while busy.
 * Returns 0 or -ENOMEM.
 */
must_check int transport_set_target(struct transport *t, const struct dsn *dsn,
				    enum compression compression);

/*
 * Starts to post a body of application/x-sentry-envelope.
 * It must stay as it is until transport_step says that the request has ended.
 * Not while busy, and not before transport_set_target. Returns 0 or -ENOMEM.
 */
must_check int transport_post(struct transport *t, const void *body, size_t size);

/* True from transport_post until transport_step has returned its answer. */
bool transport_busy(const struct transport *t);

/*
 * Waits up to timeout_ms (-1: without end) until fd is readable or closed by
 * its peer, or transport_step has something to do. fd -1: for that alone.
 * Returns 0, or -EIO if waiting itself failed.
 */
must_check int transport_wait(struct transport *t, int fd, int timeout_ms, bool *ret_readable);

/*
 * Does what can be done without waiting. Returns 1 and the answer if the
 * request has ended now, 0 if it has not, or there is none.
 */
int transport_step(struct transport *t, struct transport_answer *ret);

/* Gives up the request, if there is one; it may have been sent or not. */
void transport_abort(struct transport *t);

#endif
