/*
 * Posts envelopes to a server over HTTP or HTTPS, by libcurl: one request at a time. The connection
 * stays open for the next request, unless an answer does not arrive, or breaks off.
 *
 * Only transport_wait() blocks, so the caller can work while a request is in flight. Retries, rate
 * limits and the meaning of a status are the caller's (daemon/ship/destination.h); this module
 * returns the server's answer, or the reason why there was none.
 *
 * A status 2xx counts as an answer only if its body is empty or begins with "{", after blanks:
 * Sentry's Relay answers {"id":"..."}, or {}. Any other body is a page that a firewall or a login
 * shows in the server's place (TRANSPORT_FAULT_PAGE). An answer with any status counts even if the
 * connection breaks in the middle of the body; transport_answer.body has the bytes that came.
 *
 * Certificate and host name are always verified. Redirects are not followed, because they would
 * send the key to another server. The only protocols are http and https. A request ends without an
 * answer if libcurl has used 2 s of processor time for it, or when total_timeout_ms are over.
 *
 * Traps: libcurl takes the proxy from the variables http_proxy, https_proxy, all_proxy and no_proxy
 * of this process's environment. It resolves names on a thread of its own, so a sandbox of the
 * process must permit threads.
 *
 * Example: sends a payload in an envelope. Arguments: the DSN, the payload.
 *
 *	#include <stdio.h>
 *	#include <string.h>
 *	#include <sys/mman.h>
 *	#include "lib/ship/package.h"
 *	#include "lib/ship/transport.h"
 *
 *	int main(int argc, char **argv)
 *	{
 *		const char *payload = argc == 3 ? argv[2] : "", *error;
 *		const int fd = memfd_create("payload", MFD_CLOEXEC);
 *		const struct package package = {
 *			.event_id = {1}, .sdk_name = "example", .sdk_version = "1",
 *			.platform = "native", .payload_fd = fd, .payload_size = strlen(payload)};
 *		const struct transport_options options = {
 *			.client = "example/1", .cpu_ns = clock_cpu_ns,
 *			.connect_timeout_ms = 5000, .total_timeout_ms = 30000};
 *		const int64_t now_us = (int64_t)(clock_wall_ns() / NS_PER_US);
 *		struct transport_answer answer;
 *		struct transport *t;
 *		struct dsn dsn;
 *		struct buf body;
 *		bool readable;
 *
 *		buf_init(&body, 1 << 20);
 *		if (argc != 3 || dsn_parse(&dsn, argv[1]) != DSN_OK ||
 *		    write_all(fd, payload, strlen(payload)) < 0 ||
 *		    package_compress(&package, now_us, NULL, &body) < 0 ||
 *		    transport_new(&t, &options) < 0 ||
 *		    transport_set_target(t, &dsn, COMPRESSION_GZIP) < 0 ||
 *		    transport_post(t, body.data, body.len) < 0)
 *			return 1;
 *		while (transport_step(t, &answer) == 0)
 *			if (transport_wait(t, -1, 1000, &readable) < 0)
 *				return 1;
 *		error = answer.status == 0 ? answer.error : "answered";
 *		printf("%d %s\n", answer.status, error);
 *		transport_free(t);
 *		return answer.status != 200;
 *	}
 */
#ifndef LIB_SHIP_TRANSPORT_H
#define LIB_SHIP_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/ship/compression.h"
#include "proto/dsn.h"

struct transport;

struct transport_options {
	/* NAME/VERSION of this program, for User-Agent and X-Sentry-Auth; cut after 64 bytes. */
	const char *client;
	/*
	 * PEM certificates of authorities that are trusted in addition to the system's. NULL: none.
	 */
	const char *authorities;
	size_t authorities_size;
	/* Client certificate and its key, in PEM. client_cert NULL: neither is used. */
	const char *client_cert;
	size_t client_cert_size;
	const char *client_key;
	size_t client_key_size;
	long connect_timeout_ms; /* for name look-up, connection and TLS */
	long total_timeout_ms;	 /* for a whole request */
	clock_fn cpu_ns;	 /* processor time of this process; not NULL */
};

/* The reason for which there was no answer. */
enum transport_fault {
	TRANSPORT_FAULT_OTHER,	 /* such as a timeout, a broken connection, no memory */
	TRANSPORT_FAULT_CONNECT, /* the name is not found, or no connection */
	TRANSPORT_FAULT_PROXY,	 /* no connection to the proxy, or the proxy refuses */
	TRANSPORT_FAULT_TLS,	 /* certificates, keys, versions of TLS */
	TRANSPORT_FAULT_PAGE,	 /* a page of a firewall or a login, in the server's place */
	TRANSPORT_FAULT_N
};

/* Bytes of a body that the caller gets; longer than what a Sentry server says about an error. */
#define TRANSPORT_BODY_MAX 4096

/* The result of a request. Texts are valid until the next request or transport_free(). */
struct transport_answer {
	int status;		    /* HTTP status, 200 or more; 0: no answer */
	enum transport_fault fault; /* with status 0 */
	const char *error;	    /* with status 0: the reason, for a person; else NULL */
	/* Headers of the answer, unchecked bytes of the server; NULL: absent. */
	const char *rate_limits;  /* X-Sentry-Rate-Limits, joined by commas */
	const char *retry_after;  /* Retry-After */
	const char *sentry_error; /* X-Sentry-Error */
	const char *location;	  /* Location, of a redirect */
	/* The first TRANSPORT_BODY_MAX bytes of the body, unchecked and without a NUL. */
	const char *body;
	size_t body_size;
	/*
	 * Retry-After and Date as Unix time. 0: the header is absent or is not a date, such as
	 * "Retry-After: 30".
	 */
	int64_t retry_date_s, date_s;
};

/*
 * Makes a transport, and initialises libcurl. If the options add authorities, reads the system's;
 * if these cannot be read, trusts only the added ones. Copies *o and all that it points to. Returns
 * 0, -ENOMEM, or -E2BIG if the authorities have more than 8 MB together. The caller calls
 * transport_free().
 */
must_check int transport_new(struct transport **ret, const struct transport_options *o);
/*
 * Replaces authorities, client certificate and key by those of o, whose other members are ignored.
 * The next request makes a new connection. Must not be called while transport_busy(). Returns 0 or
 * an error of transport_new(). After an error the next request may use some of the old and some of
 * the new certificates.
 */
must_check int transport_set_certificates(struct transport *t, const struct transport_options *o);
/* Aborts the request in flight and frees everything. t may be NULL. */
void transport_free(struct transport *t);

/*
 * Sets the server of the next requests, and the compression that their bodies have. *dsn is copied.
 * A DSN without a key (dsn_parse_url) is a server on this machine or near it: requests have no
 * X-Sentry-Auth and use no proxy, and an answer may have any body. Must not be called while
 * transport_busy(). Returns 0, or -ENOMEM: then call it again before transport_post().
 */
must_check int transport_set_target(struct transport *t, const struct dsn *dsn,
				    enum compression compression);

/*
 * Starts a request with a body of type application/x-sentry-envelope. The body must not change
 * until transport_step() returns the answer, or transport_abort(). Must not be called while
 * transport_busy(), or before transport_set_target(). Returns 0 or -ENOMEM.
 */
must_check int transport_post(struct transport *t, const void *body, size_t size);

/* Returns whether a request is in flight: from transport_post() until its answer. */
bool transport_busy(const struct transport *t);

/*
 * Waits until fd is readable or closed by its peer, until transport_step() has something to do, or
 * until timeout_ms are over (-1: an hour). fd -1: there is no descriptor to wait for.
 * *ret_readable: fd is readable or closed. Returns 0, also after timeout_ms, or -EIO if waiting
 * failed.
 */
must_check int transport_wait(struct transport *t, int fd, int timeout_ms, bool *ret_readable);

/*
 * Continues the request as far as possible without waiting. Returns 1 and sets *ret if the request
 * has ended; returns 0 if it goes on, or if no request is in flight.
 */
int transport_step(struct transport *t, struct transport_answer *ret);

/* Aborts the request in flight, if there is one. The server may have received the request. */
void transport_abort(struct transport *t);

#endif
