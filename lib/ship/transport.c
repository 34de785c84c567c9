#include "lib/ship/transport.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "lib/base/buf.h"

/* Bytes of an answer's body that are read. Sentry answers with a short JSON text. */
#define RESPONSE_MAX (64 * 1024)

/* Bytes of headers, which libcurl keeps in memory. A real answer has less than 2 KB. */
#define HEADERS_MAX (64 * 1024)

#define PROXY_SAYS "its proxy: "
/* Bytes of X-Sentry-Rate-Limits, some dozens of limits. Headers beyond that are ignored. */
#define RATE_LIMITS_MAX (16 * 1024)

/*
 * Processor time that libcurl may use for a request. libcurl skips some bytes without telling its
 * caller, such as extensions of HTTP/1.1's chunks, pings of HTTP/2 and empty records of TLS; a
 * server can send these for as long as the request may last. A body of 50 MB, the most that Sentry
 * accepts, needs 0.5 s if TLS encrypts 100 MB a second.
 */
#define CPU_MAX_NS (2 * NS_PER_SEC)

/* Bytes of certificates. Debian's bundle has 220 kB. */
#define AUTHORITIES_MAX (8 * 1024 * 1024)

struct transport {
	CURLM *multi;
	CURL *settings; /* options of all requests; makes no request itself */
	CURL *request;	/* a copy for the last request; NULL: none was made */
	struct curl_slist *headers;
	bool busy;
	bool any_body; /* the target is no Sentry server */
	size_t response_bytes;
	char body[TRANSPORT_BODY_MAX];
	size_t body_size;
	size_t header_bytes;
	bool too_long; /* more than HEADERS_MAX */
	clock_fn cpu_ns;
	uint64_t request_cpu_ns; /* used by the last request */
	struct buf authorities;
	struct buf rate_limits;
	char client[65];
	char error[CURL_ERROR_SIZE];
	char reason[sizeof(PROXY_SAYS) + CURL_ERROR_SIZE];
};

static size_t read_body(char *bytes, size_t one, size_t n, void *ctx)
{
	struct transport *t = ctx;
	const size_t kept = min_size(n, sizeof(t->body) - t->body_size);

	(void)one;
	memcpy(t->body + t->body_size, bytes, kept);
	t->body_size += kept;
	if (n > RESPONSE_MAX - t->response_bytes)
		return CURL_WRITEFUNC_ERROR;
	t->response_bytes += n;
	return n;
}

/* Counts the headers of all answers to a request: there may be several "100 Continue". */
static size_t count_header(char *bytes, size_t one, size_t n, void *ctx)
{
	struct transport *t = ctx;

	(void)bytes;
	(void)one;
	if (n > HEADERS_MAX - t->header_bytes) {
		t->too_long = true;
		return CURL_WRITEFUNC_ERROR;
	}
	t->header_bytes += n;
	return n;
}

/*
 * libcurl uses given authorities instead of the system's, not in addition: so the system's are read
 * and put in front. If they cannot be read, only the given ones are trusted.
 */
static int join_authorities(struct buf *ret, const char *more, size_t size)
{
	const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
	int fd = -1;
	int r;

	if (info->cainfo != NULL)
		fd = open(info->cainfo, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && buf_read_fd(ret, fd) < 0)
		buf_clear(ret);
	close_fd(&fd);

	r = buf_add(ret, "\n", 1);
	if (r == 0)
		r = buf_add(ret, more, size);
	return r;
}

static int take_authorities(struct transport *t, const struct transport_options *o)
{
	buf_clear(&t->authorities);
	return o->authorities == NULL
		       ? 0
		       : join_authorities(&t->authorities, o->authorities, o->authorities_size);
}

/* Removes const: a blob's pointer has none, but libcurl only copies the bytes. */
static void *drop_const(const char *bytes)
{
	union {
		const char *in;
		void *out;
	} u = {.in = bytes};

	return u.out;
}

#define SET(option, value)                                                \
	do {                                                              \
		if (c == CURLE_OK)                                        \
			c = curl_easy_setopt(t->settings, option, value); \
	} while (0)

/* NULL and 0: no certificate. The only possible error is a lack of memory. */
static CURLcode set_certificates(struct transport *t, const struct transport_options *o)
{
	struct curl_blob authorities = {
		.data = t->authorities.data,
		.len = t->authorities.len,
		.flags = CURL_BLOB_COPY,
	};
	struct curl_blob cert = {
		.data = drop_const(o->client_cert),
		.len = o->client_cert_size,
		.flags = CURL_BLOB_COPY,
	};
	struct curl_blob key = {
		.data = drop_const(o->client_key),
		.len = o->client_key_size,
		.flags = CURL_BLOB_COPY,
	};
	const bool has_cert = o->client_cert != NULL;
	CURLcode c = CURLE_OK;

	SET(CURLOPT_CAINFO_BLOB, authorities.len > 0 ? &authorities : NULL);
	SET(CURLOPT_PROXY_CAINFO_BLOB, authorities.len > 0 ? &authorities : NULL);
	SET(CURLOPT_SSLCERT_BLOB, has_cert ? &cert : NULL);
	SET(CURLOPT_SSLKEY_BLOB, has_cert ? &key : NULL);
	return c;
}

/* Sets the options of all requests. The only possible error is a lack of memory. */
static CURLcode set_options(struct transport *t, const struct transport_options *o)
{
	CURLcode c = CURLE_OK;

	/* Only the URL of a DSN is requested, and dsn_parse() accepts http and https only. */
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_PATH_AS_IS, 1L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_USERAGENT, t->client);
	/* Headers are for the server only: one of them has the key. */
	SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (c == CURLE_OK)
		c = set_certificates(t, o);
	SET(CURLOPT_CONNECTTIMEOUT_MS, o->connect_timeout_ms);
	SET(CURLOPT_TIMEOUT_MS, o->total_timeout_ms);
	SET(CURLOPT_NOSIGNAL, 1L);
	/* Do not wait at exit for a name server that does not answer. */
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_ERRORBUFFER, t->error);
	SET(CURLOPT_WRITEFUNCTION, read_body);
	SET(CURLOPT_WRITEDATA, t);
	SET(CURLOPT_HEADERFUNCTION, count_header);
	SET(CURLOPT_HEADERDATA, t);
	return c;
}

#undef SET

int transport_new(struct transport **ret, const struct transport_options *o)
{
	struct transport *t;
	int r = -ENOMEM;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		goto out;
	buf_init(&t->authorities, AUTHORITIES_MAX);
	buf_init(&t->rate_limits, RATE_LIMITS_MAX);
	t->cpu_ns = o->cpu_ns;
	(void)snprintf(t->client, sizeof(t->client), "%s", o->client);

	r = take_authorities(t, o);
	if (r < 0)
		goto out;
	r = -ENOMEM;
	t->multi = curl_multi_init();
	t->settings = curl_easy_init();
	if (t->multi == NULL || t->settings == NULL || set_options(t, o) != CURLE_OK)
		goto out;
	*ret = t;
	return 0;
out:
	if (t != NULL)
		transport_free(t);
	else
		curl_global_cleanup();
	return r;
}

/*
 * Closes all connections. Returns 0 or -ENOMEM.
 *
 * Called after a request that did not end well. libcurl closes the connection of such a request if
 * it is of HTTP/1.1. It keeps one of HTTP/2, since other streams may be well; but each further
 * request would use that connection, and get no answer either, for as long as the kernel keeps a
 * connection whose peer is gone. And the stream of the request may have a pointer to the request's
 * handle (libcurl 7.88.1), which renew_request() frees.
 */
static int close_connections(struct transport *t)
{
	CURLM *multi = curl_multi_init();

	if (multi == NULL)
		return -ENOMEM;
	(void)curl_multi_cleanup(t->multi);
	t->multi = multi;
	return 0;
}

int transport_set_certificates(struct transport *t, const struct transport_options *o)
{
	int r;

	assert(!t->busy);
	r = take_authorities(t, o);
	if (r == 0 && set_certificates(t, o) != CURLE_OK)
		r = -ENOMEM;
	if (close_connections(t) < 0)
		r = -ENOMEM;
	return r;
}

void transport_free(struct transport *t)
{
	if (t == NULL)
		return;
	transport_abort(t);
	curl_easy_cleanup(t->request);
	curl_easy_cleanup(t->settings);
	(void)curl_multi_cleanup(t->multi);
	curl_slist_free_all(t->headers);
	buf_fini(&t->rate_limits);
	buf_fini(&t->authorities);
	free(t);
	curl_global_cleanup();
}

static int add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer == NULL)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int make_headers(const struct transport *t, const struct dsn *dsn,
			enum compression compression, struct curl_slist **ret)
{
	static const char *const encodings[COMPRESSION_N] = {
		[COMPRESSION_GZIP] = "Content-Encoding: gzip",
		[COMPRESSION_ZSTD] = "Content-Encoding: zstd",
	};
	static const char name[] = "X-Sentry-Auth: ";
	char auth[sizeof(name) + DSN_AUTH_SIZE];
	struct curl_slist *list = NULL;
	int r;

	memcpy(auth, name, sizeof(name));
	r = dsn_auth(dsn, t->client, auth + sizeof(name) - 1, DSN_AUTH_SIZE);
	if (r == 0 && dsn->public_key[0] != '\0')
		r = add_header(&list, auth);
	if (r == 0)
		r = add_header(&list, "Content-Type: application/x-sentry-envelope");
	if (r == 0)
		r = add_header(&list, encodings[compression]);
	/* Removes the header: libcurl would wait for a "100 Continue" before a large body. */
	if (r == 0)
		r = add_header(&list, "Expect:");
	if (r == 0)
		*ret = list;
	else
		curl_slist_free_all(list);
	return r;
}

int transport_set_target(struct transport *t, const struct dsn *dsn, enum compression compression)
{
	char url[DSN_ENDPOINT_SIZE];
	struct curl_slist *headers = NULL;
	int r;

	assert(!t->busy);
	r = dsn_endpoint(dsn, url, sizeof(url));
	if (r == 0)
		r = make_headers(t, dsn, compression, &headers);
	if (r < 0)
		return r;
	/* NULL: no_proxy of the environment applies. */
	if (curl_easy_setopt(t->settings, CURLOPT_NOPROXY,
			     dsn->public_key[0] != '\0' ? NULL : "*") != CURLE_OK ||
	    curl_easy_setopt(t->settings, CURLOPT_URL, url) != CURLE_OK ||
	    curl_easy_setopt(t->settings, CURLOPT_HTTPHEADER, headers) != CURLE_OK) {
		(void)curl_easy_setopt(t->settings, CURLOPT_HTTPHEADER, t->headers);
		curl_slist_free_all(headers);
		return -ENOMEM;
	}
	curl_slist_free_all(t->headers);
	t->headers = headers;
	t->any_body = dsn->public_key[0] == '\0';
	return 0;
}

/*
 * Makes a handle for the next request. libcurl before 8.1.0 keeps in a handle a pointer to the last
 * header of the request before, which it has freed, and appends to it if the next answer begins
 * with a folded header: a server could write into freed memory.
 */
static int renew_request(struct transport *t)
{
	curl_easy_cleanup(t->request);
	t->request = curl_easy_duphandle(t->settings);
	return t->request == NULL ? -ENOMEM : 0;
}

int transport_post(struct transport *t, const void *body, size_t size)
{
	assert(!t->busy && t->headers != NULL);
	t->response_bytes = 0;
	t->body_size = 0;
	t->header_bytes = 0;
	t->too_long = false;
	t->request_cpu_ns = 0;
	t->error[0] = '\0';
	if (renew_request(t) < 0 ||
	    curl_easy_setopt(t->request, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size) !=
		    CURLE_OK ||
	    curl_easy_setopt(t->request, CURLOPT_POSTFIELDS, body) != CURLE_OK ||
	    curl_multi_add_handle(t->multi, t->request) != CURLM_OK)
		return -ENOMEM;
	t->busy = true;
	return 0;
}

bool transport_busy(const struct transport *t)
{
	return t->busy;
}

int transport_wait(struct transport *t, int fd, int timeout_ms, bool *ret_readable)
{
	struct curl_waitfd wait = {.fd = fd, .events = CURL_WAIT_POLLIN};

	/* curl_multi_poll() needs a timeout; waking up once an hour is cheap. */
	if (timeout_ms < 0)
		timeout_ms = 60 * 60 * 1000;
	if (curl_multi_poll(t->multi, &wait, fd >= 0 ? 1 : 0, timeout_ms, NULL) != CURLM_OK)
		return -EIO;
	*ret_readable = wait.revents != 0;
	return 0;
}

static const char *get_header(struct transport *t, const char *name)
{
	struct curl_header *h;

	if (curl_easy_header(t->request, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
		return NULL;
	return h->value;
}

static int64_t date_of(const char *text)
{
	return text == NULL ? 0 : max_i64(0, curl_getdate(text, NULL));
}

/* Joins all headers of a name by commas, which HTTP defines as equivalent. */
static const char *join_headers(struct transport *t, const char *name, struct buf *b)
{
	struct curl_header *h;

	buf_clear(b);
	for (size_t i = 0; curl_easy_header(t->request, name, i, CURLH_HEADER, -1, &h) == CURLHE_OK;
	     i++) {
		if (buf_printf(b, "%s%s", i > 0 ? "," : "", h->value) < 0)
			break;
	}
	return b->len > 0 ? buf_string(b) : NULL;
}

/* Hides the text of libcurl that quotes a proxy's URL, which may have a password. */
static const char *describe_error(const struct transport *t, CURLcode code)
{
	static const char quoting[] = "Unsupported proxy ";

	if (t->too_long)
		return "its headers have no end";
	if (strncmp(t->error, quoting, strlen(quoting)) == 0)
		return "the URL of its proxy is none that libcurl supports";
	return t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
}

static enum transport_fault fault_of(struct transport *t, CURLcode code)
{
	long of_proxy = 0, verified = 0;

	(void)curl_easy_getinfo(t->request, CURLINFO_HTTP_CONNECTCODE, &of_proxy);
	(void)curl_easy_getinfo(t->request, CURLINFO_PROXY_SSL_VERIFYRESULT, &verified);
	if (of_proxy >= 300 || verified != 0 || code == CURLE_COULDNT_RESOLVE_PROXY ||
	    code == CURLE_PROXY)
		return TRANSPORT_FAULT_PROXY;
	if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT)
		return TRANSPORT_FAULT_CONNECT;
	if (code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
	    code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE)
		return TRANSPORT_FAULT_TLS;
	return TRANSPORT_FAULT_OTHER;
}

static bool is_page(const struct transport *t, long status)
{
	size_t i = 0;

	while (i < t->body_size && memchr(" \t\r\n", t->body[i], 4) != NULL)
		i++;
	return status < 300 && !t->any_body && i < t->body_size && t->body[i] != '{';
}

/*
 * A status is the server's decision, even if the connection failed later in the answer or the
 * answer was too long.
 */
static void read_answer(struct transport *t, CURLcode code, struct transport_answer *ret)
{
	long status = 0;

	*ret = (struct transport_answer){0};
	(void)curl_easy_getinfo(t->request, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200) {
		ret->fault = fault_of(t, code);
		ret->error = describe_error(t, code);
		if (ret->fault == TRANSPORT_FAULT_PROXY) {
			(void)snprintf(t->reason, sizeof(t->reason), PROXY_SAYS "%s", ret->error);
			ret->error = t->reason;
		}
		return;
	}
	if (is_page(t, status)) {
		ret->fault = TRANSPORT_FAULT_PAGE;
		(void)snprintf(t->reason, sizeof(t->reason),
			       "status %ld with a page that is no answer of a Sentry server",
			       status);
		ret->error = t->reason;
		return;
	}
	ret->status = (int)status;
	ret->rate_limits = join_headers(t, "X-Sentry-Rate-Limits", &t->rate_limits);
	ret->retry_after = get_header(t, "Retry-After");
	ret->sentry_error = get_header(t, "X-Sentry-Error");
	ret->body = t->body;
	ret->body_size = t->body_size;
	ret->location = get_header(t, "Location");
	ret->retry_date_s = date_of(ret->retry_after);
	ret->date_s = date_of(get_header(t, "Date"));
}

/* Ends the request without an answer. */
static int give_up(struct transport *t, const char *error, struct transport_answer *ret)
{
	transport_abort(t);
	*ret = (struct transport_answer){.error = error};
	return 1;
}

int transport_step(struct transport *t, struct transport_answer *ret)
{
	uint64_t start_ns;
	CURLMcode c;
	CURLMsg *m;
	int running, left;

	if (!t->busy)
		return 0;
	start_ns = t->cpu_ns();
	c = curl_multi_perform(t->multi, &running);
	t->request_cpu_ns += t->cpu_ns() - start_ns;
	if (c != CURLM_OK) {
		/* libcurl is out of memory: the request would never end. */
		return give_up(t, "out of memory", ret);
	}
	while ((m = curl_multi_info_read(t->multi, &left)) != NULL) {
		CURLcode code = m->data.result;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_multi_remove_handle(t->multi, t->request);
		t->busy = false;
		read_answer(t, code, ret);
		if (code != CURLE_OK)
			(void)close_connections(t);
		return 1;
	}
	if (t->request_cpu_ns > CPU_MAX_NS)
		return give_up(t, "it sends bytes that are no answer and take much processor time",
			       ret);
	return 0;
}

void transport_abort(struct transport *t)
{
	if (!t->busy)
		return;
	(void)curl_multi_remove_handle(t->multi, t->request);
	t->busy = false;
	(void)close_connections(t);
}
