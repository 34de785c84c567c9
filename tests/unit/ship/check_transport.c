#include "lib/ship/transport.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/ship/gzip.h"
#include "tests/unit/ship/server.h"
#include "tests/unit/suite.h"

#define CLIENT "sentry.native.profd/0.1.0"

static const char envelope[] = "{\"event_id\":\"00112233445566778899aabbccddeeff\","
			       "\"sent_at\":\"2026-01-02T03:04:05.000678Z\","
			       "\"sdk\":{\"name\":\"sentry.native.profd\",\"version\":\"0.1.0\"}}\n"
			       "{\"type\":\"profile_chunk\",\"platform\":\"rust\",\"length\":19,"
			       "\"content_type\":\"application/json\"}\n"
			       "{\"platform\":\"rust\"}\n";

static struct server server;
static struct transport *transport;
static struct buf body;

static void setup(void)
{
	struct gzip g;

	/* The tests use no proxy of this machine. */
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("all_proxy");
	buf_init(&body, 64 * 1024);
	OK(gzip_init(&g, &body));
	OK(gzip_add(&g, envelope, sizeof(envelope) - 1));
	OK(gzip_finish(&g));
	gzip_fini(&g);
}

static void teardown(void)
{
	transport_free(transport);
	transport = NULL;
	buf_fini(&body);
	server_stop(&server);
}

static void target(const char *text)
{
	struct dsn dsn;

	ck_assert_int_eq(dsn_parse(&dsn, text), DSN_OK);
	OK(transport_set_target(transport, &dsn, COMPRESSION_GZIP));
}

static uint64_t used_ns, step_ns;

/* A clock that counts the calls. */
static uint64_t cpu_ns(void)
{
	used_ns += step_ns;
	return used_ns;
}

/* Opens a transport to dsn that trusts the authority in the file ca, unless that is "". */
static void open_transport(const char *dsn, const char *ca, long timeout_ms)
{
	struct transport_options o = {
		.client = CLIENT,
		.connect_timeout_ms = timeout_ms,
		.total_timeout_ms = timeout_ms,
		.cpu_ns = cpu_ns,
	};
	struct buf pem;

	buf_init(&pem, 64 * 1024);
	if (ca[0] != '\0') {
		int fd = open(ca, O_RDONLY | O_CLOEXEC);

		ck_assert_int_ge(fd, 0);
		OK(buf_read_fd(&pem, fd));
		close_fd(&fd);
		o.authorities = pem.data;
		o.authorities_size = pem.len;
	}
	OK(transport_new(&transport, &o));
	buf_fini(&pem);
	target(dsn);
}

/* Only a defect takes this long. */
#define NEVER_MS 60000

static void start(const char *script, const char *const *args)
{
	server_start(&server, script, args);
	open_transport(server.dsn, server.ca, NEVER_MS);
}

static const char *const plain[] = {NULL};
static const char *const tls[] = {"--tls", NULL};

static struct transport_answer post(void)
{
	struct transport_answer a;
	bool ignored;

	ck_assert(!transport_busy(transport));
	OK(transport_post(transport, body.data, body.len));
	ck_assert(transport_busy(transport));
	while (transport_step(transport, &a) == 0)
		OK(transport_wait(transport, -1, -1, &ignored));
	ck_assert(!transport_busy(transport));
	return a;
}

static void assert_status(int status)
{
	struct transport_answer a = post();

	ck_assert_msg(a.status == status, "status %d: %s", a.status, a.error);
	ck_assert_ptr_null(a.error);
}

/* Expects no answer, and an error that contains text. */
static void assert_none(const char *text)
{
	struct transport_answer a = post();

	ck_assert_int_eq(a.status, 0);
	ck_assert_ptr_nonnull(a.error);
	ck_assert_msg(strcasestr(a.error, text) != NULL, "error: %s", a.error);
	LACKS(a.error, "0123456789abcdef");
	ck_assert_ptr_null(a.rate_limits);
	ck_assert_ptr_null(a.retry_after);
	ck_assert_ptr_null(a.sentry_error);
}

FIXTURE(setup, teardown)

TEST(requests_share_one_connection)
{
	json_t *first, *second;
	char *data;
	size_t size;

	start(NULL, tls);
	assert_status(200);
	assert_status(200);
	first = server_request(&server, 0);
	second = server_request(&server, 1);
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_nonnull(second);
	ck_assert_uint_eq(json_array_size(json_object_get(first, "problems")), 0);
	ck_assert(json_equal(json_object_get(first, "connection"),
			     json_object_get(second, "connection")));
	ck_assert_str_eq(json_string_value(json_object_get(first, "path")), "/api/42/envelope/");
	data = server_read_file(&server, "0001.envelope", &size);
	ck_assert_uint_eq(size, sizeof(envelope) - 1);
	ck_assert_str_eq(data, envelope);
	free(data);
	json_decref(first);
	json_decref(second);
}

/* By default libcurl sends "Expect" before a large body. */
TEST(a_large_body_is_sent_without_expect)
{
	uint8_t *large = calloc(1, 3000000);
	json_t *request;

	start(NULL, plain);
	buf_fini(&body);
	buf_init(&body, 3000000);
	OK(buf_add(&body, large, 3000000));
	free(large);
	/* The body is no gzip stream. */
	assert_status(400);
	request = server_request(&server, 0);
	ck_assert_uint_eq(json_array_size(json_object_get(request, "problems")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(request, "compressed_size")), 3000000);
	json_decref(request);
}

TEST(an_answer_has_the_headers_of_the_server)
{
	struct transport_answer a;

	start("{\"status\": 429, \"headers\": {\"X-Sentry-Rate-Limits\": "
	      "[\"60:a:b\", \"70:c:d\"], \"Retry-After\": \"77\"}}\n"
	      "{\"status\": 400, \"headers\": {\"X-Sentry-Error\": "
	      "\"bad chunk\"}}\n"
	      "{\"status\": 429, \"headers\": {\"Retry-After\": "
	      "\"Sun, 06 Nov 1994 08:49:37 GMT\"}}\n"
	      "{\"status\": 429, \"headers\": {\"Retry-After\": "
	      "\"Sunday, 06-Nov-94 08:49:37 GMT\"}}\n"
	      "{\"status\": 429, \"headers\": {\"Retry-After\": "
	      "\"Sun Nov  6 08:49:37 1994\"}}\n",
	      tls);
	a = post();
	ck_assert_int_eq(a.status, 429);
	ck_assert_str_eq(a.rate_limits, "60:a:b,70:c:d");
	ck_assert_str_eq(a.retry_after, "77");
	ck_assert_int_eq(a.retry_date_s, 0);
	ck_assert_ptr_null(a.sentry_error);
	a = post();
	ck_assert_int_eq(a.status, 400);
	ck_assert_ptr_null(a.rate_limits);
	ck_assert_ptr_null(a.retry_after);
	ck_assert_str_eq(a.sentry_error, "bad chunk");
	/* The three forms of a date: RFC 9110, 5.6.7. */
	for (int i = 0; i < 3; i++) {
		a = post();
		ck_assert_int_eq(a.retry_date_s, 784111777);
		ck_assert_int_gt(a.date_s, 784111777);
	}
	/* The next answer has none of them. */
	a = post();
	ck_assert_int_eq(a.status, 200);
	ck_assert_ptr_null(a.sentry_error);
}

TEST(every_status_is_returned)
{
	start("{\"status\": 413}\n{\"status\": 500}\n{\"status\": 204, "
	      "\"body\": \"\"}\n"
	      "{\"status\": 302, \"headers\": {\"Location\": "
	      "\"/api/42/envelope/\"}}\n",
	      plain);
	assert_status(413);
	assert_status(500);
	assert_status(204);
	/* Redirects are not followed: the fourth request gets the fourth answer. */
	assert_status(302);
	ck_assert_ptr_null(server_request(&server, 4));
}

TEST(a_status_without_its_body_is_an_answer)
{
	char script[100 * 1024];
	int n;

	n = snprintf(script, sizeof(script), "{\"do\": \"truncate\"}\n{\"body\": \"{%090000d\"}\n",
		     0);
	ck_assert_int_lt(n, (int)sizeof(script));
	start(script, plain);
	assert_status(200);
	assert_status(200);
	assert_status(200);
}

TEST(a_page_in_place_of_the_server_is_no_answer)
{
	start("{\"body\": \"<html>\"}\n{\"body\": \" \\n[]\"}\n{\"body\": \"{}\"}\n"
	      "{\"body\": \"\"}\n{\"body\": \" \\n{\"}\n{\"status\": 400, \"body\": \"no\"}\n",
	      plain);
	assert_none("status 200 with a page");
	assert_none("status 200 with a page");
	assert_status(200);
	assert_status(200);
	assert_status(200);
	assert_status(400);
}

TEST(a_server_without_a_key_may_answer_with_any_body)
{
	static const char *const spotlight[] = {"--spotlight", NULL};
	char url[64];
	struct dsn dsn;

	start("{\"status\": 200, \"body\": \"<html>\"}\n", spotlight);
	(void)snprintf(url, sizeof(url), "http://localhost:%d/stream", server.port);
	ck_assert_int_eq(dsn_parse_url(&dsn, url), DSN_OK);
	OK(transport_set_target(transport, &dsn, COMPRESSION_GZIP));
	assert_status(200);
}

TEST(headers_without_an_end_are_no_answer)
{
	/* Headers of a 1xx, which is no answer; and of an answer with a status. */
	start("{\"do\": \"endless\"}\n{\"do\": \"endless_head\"}\n", plain);
	assert_none("headers have no end");
	assert_status(200);
	assert_status(200);
}

/* The bytes are of no header and of no body. */
TEST(an_answer_may_not_take_much_processor_time)
{
	start("{\"do\": \"endless_extension\"}\n", plain);
	step_ns = NS_PER_SEC;
	assert_none("processor time");
	step_ns = 0;
	assert_status(200);
}

/* libcurl before 8.1.0 would append it to a header of the answer before, which it has freed. */
TEST(an_answer_may_begin_with_a_folded_header)
{
	start("{}\n{\"do\": \"folded\"}\n{\"do\": \"folded\"}\n", plain);
	assert_status(200);
	assert_status(200);
	assert_status(200);
	assert_status(200);
}

TEST(reports_a_closed_connection)
{
	start("{\"do\": \"close\"}\n", tls);
	assert_none("");
	assert_status(200);
}

TEST(a_stalled_request_ends_at_the_timeout)
{
	struct transport_answer a;

	server_start(&server, "{\"do\": \"stall\"}\n", plain);
	open_transport(server.dsn, server.ca, 300);
	assert_none("timed out");
	/* The next request is answered if the server is fast enough. */
	while ((a = post()).status == 0)
		ck_assert_ptr_nonnull(strcasestr(a.error, "timed out"));
	ck_assert_int_eq(a.status, 200);
}

TEST(reports_a_refused_connection)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char dsn[64];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* The port is bound, so that no other process can use it, and does not listen. */
	OK(bind(fd, (struct sockaddr *)&a, len));
	OK(getsockname(fd, (struct sockaddr *)&a, &len));
	(void)snprintf(dsn, sizeof(dsn), "https://key@127.0.0.1:%d/1", ntohs(a.sin_port));
	open_transport(dsn, "", NEVER_MS);
	assert_none("connect");
	close_fd(&fd);
}

TEST(refuses_an_unknown_authority)
{
	server_start(&server, NULL, tls);
	open_transport(server.dsn, "", NEVER_MS);
	assert_none("certificate");
}

/* A given authority does not make certificates of other authorities valid. */
TEST(refuses_another_authority)
{
	struct server other;

	server_start(&other, NULL, tls);
	server_start(&server, NULL, tls);
	open_transport(server.dsn, other.ca, NEVER_MS);
	assert_none("certificate");
	target(other.dsn);
	assert_status(200);
	server_stop(&other);
}

/*
 * Gives this process a mount namespace of its own. In a chroot "/" may not be a mount: setns(2)
 * leads to the root of the namespace, and the function returns to the chroot.
 */
static void make_mounts_private(void)
{
	int root, mounts;

	OK(unshare(CLONE_NEWNS));
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(root, 0);
	mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(mounts, 0);
	OK(setns(mounts, CLONE_NEWNS));
	OK(mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL));
	OK(fchdir(root));
	OK(chroot("."));
	close_fd(&mounts);
	close_fd(&root);
}

/*
 * The system's authorities are still trusted if others are given. The test mounts another file over
 * the system's bundle, in its own mount namespace.
 */
TEST_IF(trusts_the_system_s_authorities_too, getuid() == 0)
{
	const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
	struct server other;

	ck_assert_ptr_nonnull(info->cainfo);
	server_start(&other, NULL, tls);
	server_start(&server, NULL, tls);
	make_mounts_private();
	OK(mount(server.ca, info->cainfo, "none", MS_BIND, NULL));
	open_transport(server.dsn, other.ca, NEVER_MS);
	assert_status(200);
	target(other.dsn);
	assert_status(200);
	server_stop(&other);
}

TEST(refuses_another_host_name)
{
	static const char *const elsewhere[] = {"--tls", "--name", "example.org", NULL};

	start(NULL, elsewhere);
	assert_none("subject name");
}

TEST(uses_the_proxy_of_the_environment)
{
	char proxy[64];
	json_t *request;

	server_start(&server, NULL, plain);
	(void)snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", server.port);
	setenv("http_proxy", proxy, 1);
	open_transport("http://0123456789abcdef0123456789abcdef@"
		       "sentry.invalid/42",
		       "", NEVER_MS);
	assert_status(200);
	request = server_request(&server, 0);
	ck_assert_str_eq(json_string_value(json_object_get(request, "path")),
			 "http://sentry.invalid/api/42/envelope/");
	json_decref(request);
}

TEST(no_proxy_excludes_a_host_from_the_proxy)
{
	/* No process listens at the proxy's address. */
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("no_proxy", "example.org,localhost", 1);
	start(NULL, plain);
	assert_status(200);
	unsetenv("no_proxy");
	assert_none("connect");
}

/* The status of a proxy that refuses to connect is not the server's answer. */
TEST(a_status_of_a_proxy_is_no_answer)
{
	char proxy[64];

	/* The proxy answers CONNECT with 501. */
	server_start(&server, NULL, plain);
	(void)snprintf(proxy, sizeof(proxy), "http://127.0.0.1:%d", server.port);
	setenv("https_proxy", proxy, 1);
	open_transport("https://key@sentry.invalid/42", "", NEVER_MS);
	assert_none("tunnel");
}

TEST(errors_do_not_show_the_password_of_a_proxy)
{
	setenv("http_proxy", "http://user:secret@pro xy:1", 1);
	start(NULL, plain);
	assert_none("the URL of its proxy");
	setenv("http_proxy", "socks6://user:secret@proxy:1", 1);
	assert_none("the URL of its proxy");
}

TEST(the_error_names_a_damaged_certificate)
{
	static const char pem[] = "-----BEGIN CERTIFICATE-----\nMAYCAQU\n"
				  "-----END CERTIFICATE-----\n";
	const struct transport_options damaged = {
		.authorities = pem,
		.authorities_size = sizeof(pem) - 1,
	};
	const struct transport_options of_client = {
		.client_cert = pem,
		.client_cert_size = sizeof(pem) - 1,
		.client_key = pem,
		.client_key_size = sizeof(pem) - 1,
	};

	start(NULL, tls);
	ck_assert_int_eq(transport_set_certificates(transport, &damaged), 0);
	assert_none("certificate blob");
	ck_assert_int_eq(transport_set_certificates(transport, &of_client), 0);
	assert_none("client certificate");
}

TEST(a_request_can_be_aborted)
{
	struct transport_answer a;

	start("{\"do\": \"stall\"}\n", plain);
	OK(transport_post(transport, body.data, body.len));
	ck_assert_int_eq(transport_step(transport, &a), 0);
	transport_abort(transport);
	ck_assert(!transport_busy(transport));
	ck_assert_int_eq(transport_step(transport, &a), 0);
}

TEST(waiting_ends_when_the_descriptor_is_readable)
{
	bool readable;
	int fds[2];

	open_transport("https://key@localhost/1", "", NEVER_MS);
	OK(pipe(fds));
	OK(transport_wait(transport, fds[0], 0, &readable));
	ck_assert(!readable);
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	OK(transport_wait(transport, fds[0], -1, &readable));
	ck_assert(readable);
	close_fd(&fds[0]);
	close_fd(&fds[1]);
}

/* transport_wait() also returns when the peer closes the socket. */
TEST(waiting_ends_when_the_peer_closes_the_socket)
{
	bool readable;
	int fds[2];

	open_transport("https://key@localhost/1", "", NEVER_MS);
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	/* With unread data the end is the error ECONNRESET. */
	ck_assert_int_eq(send(fds[0], "x", 1, 0), 1);
	close_fd(&fds[1]);
	OK(transport_wait(transport, fds[0], -1, &readable));
	ck_assert(readable);
	close_fd(&fds[0]);
}
