/*
 * Tests of ship as a process, with the test as its broker: results of envelopes, limits, client
 * reports, its end. tests/integration/test_delivery_*.py has the answers and failures of servers.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/unit/ship/process.h"

static const char *const plain[] = {NULL};
static const char *const tls[] = {"--tls", NULL};

/* limited: end of a rate limit that the broker knows, by CLOCK_BOOTTIME. */
static void send_limited_dsn(const char *text, uint64_t limited)
{
	send_dsn_as((struct msg_dsn){.limited_until_ns = limited}, text);
}

/* Starts a server, and a ship that trusts it. */
static void start(const char *script, const char *const *args)
{
	server_start(&server, script, args);
	start_trusting_ship(server.ca);
	send_dsn(server.dsn);
}

static void assert_written(uint64_t seq, int error)
{
	struct msg_envelope_written m;

	receive(MSG_ENVELOPE_WRITTEN, &m, sizeof(m));
	ck_assert_uint_eq(m.seq, seq);
	ck_assert_int_eq(m.error, error);
}

/* Sends an envelope and expects this result. */
static void assert_sent(uint64_t seq, uint32_t result)
{
	send_envelope(seq, -1, true);
	assert_done(seq, result);
}

static void wait_logged(const char *text)
{
	struct buf log;
	bool found;

	do {
		buf_init(&log, 1024 * 1024);
		OK(lseek(log_fd, 0, SEEK_SET));
		OK(buf_read_fd(&log, log_fd));
		found = strstr(buf_string(&log), text) != NULL;
		buf_fini(&log);
	} while (!found && usleep(1000) == 0);
	ck_assert(found);
}

static void send_finish(uint64_t timeout_ns)
{
	const struct msg_number m = {
		.h = MSG_HEADER(MSG_SHIP_FINISH),
		.n = timeout_ns,
	};

	send_message(&m, sizeof(m), NULL, 0);
}

/* Sends an envelope to a server that does not answer, and sets a deadline of now. */
static void assert_not_answered(uint64_t seq)
{
	send_envelope(seq, -1, true);
	wait_logged("does not answer");
	send_finish(0);
	assert_done(seq, DISCARD_NETWORK_ERROR);
}

static size_t count_requests(void)
{
	size_t n = 0;

	for (json_t *r; (r = server_request(&server, n)) != NULL; n++)
		json_decref(r);
	return n;
}

static void assert_no_problems(size_t n)
{
	json_t *r = server_request(&server, n);
	char *text;

	ck_assert_ptr_nonnull(r);
	text = json_dumps(json_object_get(r, "problems"), JSON_ENCODE_ANY);
	ck_assert_str_eq(text, "[]");
	free(text);
	json_decref(r);
}

static json_t *parse_line(char **at)
{
	char *end = strchr(*at, '\n');
	json_t *line;

	ck_assert_ptr_nonnull(end);
	*end = '\0';
	line = json_loads(*at, 0, NULL);
	ck_assert_ptr_nonnull(line);
	*at = end + 1;
	return line;
}

/* Returns the payload of an item of the n-th request, for the caller to free, or NULL. */
static char *item_of_request(size_t n, const char *type)
{
	char name[32], *text, *at, *found = NULL;
	size_t size;

	(void)snprintf(name, sizeof(name), "%04zu.envelope", n + 1);
	text = server_read_file(&server, name, &size);
	at = strchr(text, '\n') + 1;
	while (found == NULL && at < text + size) {
		json_t *item = parse_line(&at);
		size_t length = (size_t)json_integer_value(json_object_get(item, "length"));

		if (strcmp(json_string_value(json_object_get(item, "type")), type) == 0)
			found = strndup(at, length);
		at += length + 1;
		json_decref(item);
	}
	free(text);
	return found;
}

FIXTURE(setup, teardown)

/* Checks the limit of the last MSG_LIMITED; up to half of it may have passed. */
static void assert_limited(uint64_t seconds)
{
	const uint64_t now_ns = clock_boot_ns();

	ck_assert_uint_le(limited_until_ns, now_ns + seconds * NS_PER_SEC);
	ck_assert_uint_gt(limited_until_ns, now_ns + seconds / 2 * NS_PER_SEC);
}

TEST(no_envelope_is_sent_during_a_rate_limit)
{
	start("{\"status\": 200, \"headers\": {\"X-Sentry-Rate-Limits\": "
	      "\"600:error:key\"}}\n"
	      "{\"status\": 200, \"headers\": {\"X-Sentry-Rate-Limits\": "
	      "\"90000:profile_chunk:key\"}}\n",
	      plain);
	assert_sent(1, SHIP_DONE);
	assert_sent(2, SHIP_DONE);
	assert_sent(3, DISCARD_RATE_LIMITED);
	ck_assert_uint_eq(count_requests(), 2);
	/* A new DSN has no limits yet. */
	send_dsn(server.dsn);
	assert_sent(4, SHIP_DONE);
	wait_ship(0);
	/* The limit was cut to a day. */
	assert_limited(UINT64_C(24) * 3600);
}

/* A ship for V1 profiles reports only rate limits on these. */
TEST(reports_limits_of_v1)
{
	start("{\"headers\": {\"X-Sentry-Rate-Limits\": "
	      "\"3600:profile_chunk:key, 600:transaction:key\"}}\n",
	      plain);
	send_dsn_as((struct msg_dsn){.kind = ENVELOPE_V1}, server.dsn);
	assert_sent(1, SHIP_DONE);
	assert_sent(2, DISCARD_RATE_LIMITED);
	assert_limited(600);
	wait_ship(0);
}

TEST(a_limit_that_the_broker_knows_is_obeyed)
{
	start(NULL, plain);
	send_limited_dsn(server.dsn, clock_boot_ns() + 3600 * NS_PER_SEC);
	assert_sent(1, DISCARD_RATE_LIMITED);
	ck_assert_uint_eq(count_requests(), 0);
	send_limited_dsn(server.dsn, clock_boot_ns());
	assert_sent(2, SHIP_DONE);
	wait_ship(0);
}

TEST(a_denial_that_the_broker_knows_begins_with_a_probe)
{
	char *chunk;

	start("{\"status\": 401, \"body\": \"{\\\"detail\\\": \\\"no such key\\\"}\"}\n", plain);
	send_dsn_as((struct msg_dsn){.denial = 403}, server.dsn);
	assert_sent(1, SHIP_DONE);
	/* The first probe was denied, the second was not. */
	chunk = item_of_request(2, "profile_chunk");
	ck_assert_ptr_nonnull(chunk);
	free(chunk);
	for (size_t n = 0; n < 2; n++) {
		assert_no_problems(n);
		ck_assert_ptr_null(item_of_request(n, "profile_chunk"));
	}
	ck_assert_uint_eq(denied.status, 0);
	wait_ship(0);
}

/*
 * The name does not exist (RFC 2606). The system calls that the filter must permit depend on
 * whether a name server answers.
 */
TEST(a_name_that_does_not_exist_is_reported)
{
	start_ship();
	send_dsn("https://" KEY "@sentry.invalid/1");
	assert_not_answered(1);
	wait_ship(0);
	/* "Could not resolve host" or "Resolving timed out". */
	assert_logged("esolv");
}

/* Makes a server that never accepts: connections stay in its backlog. */
static int stall(char dsn[static 64])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	OK(bind(fd, (struct sockaddr *)&a, len));
	OK(listen(fd, 8));
	OK(getsockname(fd, (struct sockaddr *)&a, &len));
	(void)snprintf(dsn, 64, "http://" KEY "@127.0.0.1:%d/1", ntohs(a.sin_port));
	return fd;
}

/* Waits until ship has connected. */
static void wait_connection(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	ck_assert_int_eq(poll(&p, 1, -1), 1);
}

TEST(a_full_queue_drops_the_oldest_envelope)
{
	char dsn[64];
	int listening = stall(dsn);

	start_ship();
	send_dsn(dsn);
	send_envelope(1, -1, true);
	wait_connection(listening);
	/* The queue has room for 32. */
	for (uint64_t seq = 2; seq <= 34; seq++)
		send_envelope(seq, -1, true);
	assert_done(2, DISCARD_QUEUE_OVERFLOW);
	send_dsn("");
	send_envelope(35, -1, false);
	assert_done(35, SHIP_NOT_SENT);
	close_fd(&listening);
	/* The request failed, and the queue is full. */
	assert_done(1, DISCARD_QUEUE_OVERFLOW);
	/* There is no DSN for the others. */
	for (uint64_t seq = 3; seq <= 34; seq++)
		assert_done(seq, SHIP_NOT_SENT);
	wait_ship(0);
}

TEST(ship_ends_at_the_deadline_if_the_server_stalls)
{
	char dsn[64];
	int listening = stall(dsn);

	start_ship();
	send_dsn(dsn);
	send_envelope(1, -1, true);
	send_envelope(2, -1, true);
	wait_connection(listening);
	wait_ship(0);
	assert_logged("2 chunks were not sent before the end");
	close_fd(&listening);
}

TEST(a_ship_whose_server_stalls_answers_pings)
{
	const struct msg_id ping = {.h = MSG_HEADER(MSG_PING)};
	struct msg_id pong;
	char dsn[64];
	int fd = stall(dsn);

	start_ship();
	send_dsn(dsn);
	send_envelope(1, -1, true);
	wait_connection(fd);
	send_message(&ping, sizeof(ping), NULL, 0);
	receive(MSG_PONG, &pong, sizeof(pong));
	close_fd(&fd);
}

TEST(envelopes_after_the_deadline_are_logged_in_one_line)
{
	char dsn[64];
	int listening = stall(dsn);

	/* No process listens, but the port stays bound. */
	OK(shutdown(listening, SHUT_RDWR));
	start_ship();
	send_dsn(dsn);
	send_finish(0);
	for (uint64_t seq = 1; seq <= 3; seq++) {
		send_envelope(seq, -1, true);
		assert_done(seq, DISCARD_NETWORK_ERROR);
	}
	wait_ship(0);
	assert_logged("3 chunks were not sent before the end");
	close_fd(&listening);
}

/* Checks that the n-th request has a report of this one reason. */
static void assert_reported(size_t n, const char *reason, int quantity)
{
	char *text = item_of_request(n, "client_report");
	json_t *report, *events, *expected;

	ck_assert_ptr_nonnull(text);
	assert_no_problems(n);
	report = json_loads(text, 0, NULL);
	ck_assert(json_is_integer(json_object_get(report, "timestamp")));
	events = json_object_get(report, "discarded_events");
	expected = json_pack("[{s:s, s:s, s:i}]", "reason", reason, "category", "profile_chunk",
			     "quantity", quantity);
	ck_assert_msg(json_equal(events, expected), "%s", text);
	json_decref(expected);
	json_decref(report);
	free(text);
}

TEST(reports_losses_at_the_end)
{
	start("{\"status\": 500}\n{\"status\": 400}\n", tls);
	assert_sent(1, DISCARD_SEND_ERROR);
	assert_sent(2, DISCARD_SEND_ERROR);
	assert_sent(3, SHIP_DONE);
	/* No report yet: 30 s have not passed. */
	ck_assert_uint_eq(count_requests(), 3);
	wait_ship(0);
	ck_assert_uint_eq(count_requests(), 4);
	assert_reported(3, "send_error", 2);
}

TEST(reports_losses_of_the_broker)
{
	start(NULL, plain);
	send_lost(CLIENT_REPORT_INSUFFICIENT_DATA, ENVELOPE_CHUNK, 3);
	send_lost(CLIENT_REPORT_INSUFFICIENT_DATA, ENVELOPE_CHUNK, 4);
	assert_sent(1, SHIP_DONE);
	wait_ship(0);
	ck_assert_uint_eq(count_requests(), 2);
	assert_reported(1, "insufficient_data", 7);
}

TEST(retries_after_502_to_504_if_asked)
{
	start("{\"status\": 502}\n{\"status\": 503}\n"
	      "{\"status\": 504}\n{\"status\": 500}\n",
	      plain);
	send_dsn_as((struct msg_dsn){.retry_5xx = 1}, server.dsn);
	/* The waits are up to 1, 2 and 4 s. */
	assert_sent(1, DISCARD_SEND_ERROR);
	ck_assert_uint_eq(count_requests(), 4);
	assert_sent(2, SHIP_DONE);
	wait_ship(0);
	assert_reported(5, "send_error", 1);
	assert_logged("does not answer: HTTP status 502");
	assert_logged("answers again");
}

TEST(reports_a_full_disk)
{
	int file = open("/dev/full", O_WRONLY | O_CLOEXEC);

	start(NULL, plain);
	send_envelope(1, file, true);
	assert_written(1, ENOSPC);
	/* The envelope is sent nevertheless. */
	assert_done(1, SHIP_DONE);
	close_fd(&file);
	wait_ship(0);
	assert_logged("No space left");
}

TEST(leaves_signals_to_the_broker)
{
	start_ship();
	send_envelope(1, -1, false);
	assert_done(1, SHIP_NOT_SENT);
	OK(kill(ship, SIGINT));
	OK(kill(ship, SIGTERM));
	OK(kill(ship, SIGHUP));
	send_envelope(2, -1, false);
	assert_done(2, SHIP_NOT_SENT);
	wait_ship(0);
}

TEST(prints_its_version)
{
	static const char version[] = "sentry-profd-ship " SENTRY_PROFD_VERSION;
	const char *text;

	exec_ship(-1, "--version");
	wait_ship(0);
	text = buf_string(&log_text);
	ck_assert_msg(strncmp(text, version, strlen(version)) == 0, "%s", text);
	/* The commit follows if the build knows it. */
	text += strlen(version);
	ck_assert_msg(strcmp(text, "\n") == 0 || strncmp(text, " (commit ", 9) == 0, "%s", text);
}
