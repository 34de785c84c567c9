/*
 * sentry-profd-ship as a process, under the filter that kills: this test is its
 * broker. What it does with a server's answers and failures is tested by
 * tests/integration/test_delivery_*.py.
 */
#include <arpa/inet.h>
#include <grp.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "daemon/common/privileges.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "lib/ship/compression.h"
#include "proto/client_report.h"
#include "tests/unit/ship/server.h"
#include "tests/unit/suite.h"

#define KEY	 "0123456789abcdef0123456789abcdef"
#define CHUNK_ID "c0ffeec0ffeec0ffeec0ffeec0ffee00"
#define PAYLOAD	 "{\"platform\":\"rust\",\"text\":\"\303\244\"}"

/* What an ordinary process is, wherever the test runs as root. */
#define NOBODY 65534

static struct server server;
static struct buf log_text;
static pid_t ship;
static int ship_fd = -1;
static int log_fd = -1;
static uint64_t limited_until_ns; /* what ship said last */

static const char *const plain[] = {NULL};
static const char *const tls[] = {"--tls", NULL};

/*
 * In BUILD, or next to this program's directory: BUILD/tests/ship/check_shipd.
 * This test may be built with sanitizers, the process never is: they make
 * calls of their own.
 */
static void ship_path(char ret[static PATH_MAX])
{
	const char *build = getenv("BUILD");
	ssize_t n;

	if (build != NULL) {
		(void)snprintf(ret, PATH_MAX, "%s/sentry-profd-ship", build);
		return;
	}
	n = readlink("/proc/self/exe", ret, PATH_MAX - 64);
	ck_assert_int_gt(n, 0);
	ret[n] = '\0';
	for (int up = 0; up < 3; up++)
		*strrchr(ret, '/') = '\0';
	(void)strncat(ret, "/sentry-profd-ship", 32);
}

/* Starts it with fd 3 and, if it is not NULL, an argument. */
static void exec_ship(int fd, const char *argument)
{
	char path[PATH_MAX];

	ship_path(path);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_ge(log_fd, 0);
	/* The offset is shared: reading shall not move where ship writes. */
	OK(fcntl(log_fd, F_SETFL, O_APPEND));
	ship = fork();
	ck_assert_int_ge(ship, 0);
	if (ship != 0)
		return;
	/* Something to be given up. */
	if (getuid() == 0 && setgroups(1, &(gid_t){1}) < 0)
		_exit(127);
	(void)dup2(log_fd, STDOUT_FILENO);
	(void)dup2(log_fd, STDERR_FILENO);
	if (fd < 0)
		(void)close(MSG_FD);
	else if (fd == MSG_FD)
		(void)fcntl(fd, F_SETFD, 0);
	else
		(void)dup2(fd, MSG_FD);
	(void)execl(path, path, argument, NULL);
	_exit(127);
}

static void send_message(const void *m, size_t size, const int *fds, size_t n_fds)
{
	OK(ipc_send(ship_fd, m, size, fds, n_fds));
}

/* m: what is said besides. */
static void send_dsn_as(struct msg_dsn m, const char *text)
{
	m.h = (struct msg_header)MSG_HEADER(MSG_DSN);
	(void)snprintf(m.dsn, sizeof(m.dsn), "%s", text);
	send_message(&m, sizeof(m), NULL, 0);
}

static void send_dsn(const char *text)
{
	send_dsn_as((struct msg_dsn){0}, text);
}

/* limited: until then, by CLOCK_BOOTTIME. */
static void send_limited_dsn(const char *text, uint64_t limited)
{
	send_dsn_as((struct msg_dsn){.limited_until_ns = limited}, text);
}

/* The first that it says. */
static void wait_ready(void)
{
	struct ipc_message m;
	struct msg_id ready;

	ck_assert_int_eq(ipc_recv(ship_fd, &m), 1);
	ck_assert_uint_eq(m.size, sizeof(ready));
	memcpy(&ready, m.bytes, sizeof(ready));
	ck_assert_uint_eq(ready.h.type, MSG_READY);
}

/* ca: of authorities, which ship may not open itself; "": none. */
static void start_trusting_ship(const char *ca)
{
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT),
		.uid = getuid() == 0 ? NOBODY : PRIVILEGES_KEEP_ID,
		.gid = getuid() == 0 ? NOBODY : PRIVILEGES_KEEP_ID,
		.debug = 1,
		.seccomp_kill = 1,
		.files = ca[0] != '\0' ? 1u << INIT_CA_CERTS : 0,
	};
	int fds[2], ca_fd = -1;

	OK(ipc_pair(fds));
	exec_ship(fds[1], NULL);
	close_fd(&fds[1]);
	ship_fd = fds[0];
	if (ca[0] != '\0') {
		ca_fd = open(ca, O_RDONLY | O_CLOEXEC);
		ck_assert_int_ge(ca_fd, 0);
	}
	send_message(&init, sizeof(init), &ca_fd, ca_fd >= 0);
	close_fd(&ca_fd);
	wait_ready();
}

static void start_ship(void)
{
	start_trusting_ship("");
}

/* Waits for the end; the log is in log_text then. */
static void wait_ship(int expected)
{
	int status;

	close_fd(&ship_fd);
	ck_assert_int_eq(waitpid(ship, &status, 0), ship);
	ship = 0;
	OK(lseek(log_fd, 0, SEEK_SET));
	OK(buf_read_fd(&log_text, log_fd));
	close_fd(&log_fd);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected, "status %#x, log: %s",
		      (unsigned int)status, buf_string(&log_text));
	LACKS(buf_string(&log_text), KEY);
}

static void assert_logged(const char *text)
{
	ck_assert_msg(strstr(buf_string(&log_text), text) != NULL, "no \"%s\" in: %s", text,
		      buf_string(&log_text));
}

static void setup(void)
{
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("all_proxy");
	buf_init(&log_text, 1024 * 1024);
}

static void teardown(void)
{
	if (ship > 0) {
		(void)kill(ship, SIGKILL);
		(void)waitpid(ship, NULL, 0);
		ship = 0;
	}
	close_fd(&ship_fd);
	close_fd(&log_fd);
	buf_fini(&log_text);
	server_stop(&server);
}

/* Server and ship, which trusts the server. */
static void start(const char *script, const char *const *args)
{
	server_start(&server, script, args);
	start_trusting_ship(server.ca);
	send_dsn(server.dsn);
}

static int make_payload(const char *text, int seals)
{
	int fd = suite_file(text);

	OK(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static struct msg_envelope make_envelope(uint64_t seq, bool to_file, bool to_server)
{
	return (struct msg_envelope){
		.h = MSG_HEADER(MSG_ENVELOPE),
		.seq = seq,
		.size = sizeof(PAYLOAD) - 1,
		.to_file = to_file,
		.to_server = to_server,
		.chunk_id = CHUNK_ID,
		.platform = "rust",
	};
}

/* file: to write to, or -1. */
static void send_envelope(uint64_t seq, int file, bool to_server)
{
	struct msg_envelope m = make_envelope(seq, file >= 0, to_server);
	int fds[] = {make_payload(PAYLOAD, SEALS), file};

	send_message(&m, sizeof(m), fds, file >= 0 ? 2 : 1);
	close_fd(&fds[0]);
}

#define FILE_PAYLOAD "{\"what\":\"only the file says\"}"

/*
 * The next message of ship: of this type and size. Limits come beside the
 * others.
 */
static void receive(uint32_t type, void *ret, size_t size)
{
	struct msg_number limited;
	struct msg_header header;
	struct ipc_message m;

	for (;;) {
		if (ipc_recv(ship_fd, &m) != 1)
			wait_ship(-1);
		ck_assert_uint_eq(m.n_fds, 0);
		memcpy(&header, m.bytes, sizeof(header));
		if (header.type != MSG_LIMITED || type == MSG_LIMITED)
			break;
		memcpy(&limited, m.bytes, sizeof(limited));
		limited_until_ns = limited.n;
	}
	ck_assert_uint_eq(m.size, size);
	ck_assert_uint_eq(header.type, type);
	memcpy(ret, m.bytes, size);
}

static void assert_written(uint64_t seq, int error)
{
	struct msg_envelope_written m;

	receive(MSG_ENVELOPE_WRITTEN, &m, sizeof(m));
	ck_assert_uint_eq(m.seq, seq);
	ck_assert_int_eq(m.error, error);
}

static void assert_done(uint64_t seq, uint32_t result)
{
	struct msg_envelope_done m;

	receive(MSG_ENVELOPE_DONE, &m, sizeof(m));
	ck_assert_uint_eq(m.seq, seq);
	ck_assert_uint_eq(m.result, result);
}

/* Sends one and expects that. */
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

/* There is no answer for it, and no time to wait for one. */
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

FIXTURE(setup, teardown)

/* ship has said so; some of it may have passed. */
static void assert_limited(uint64_t seconds)
{
	const uint64_t now_ns = clock_boot_ns();

	ck_assert_uint_le(limited_until_ns, now_ns + seconds * NS_PER_SEC);
	ck_assert_uint_gt(limited_until_ns, now_ns + seconds / 2 * NS_PER_SEC);
}

TEST(obeys_limits)
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
	/* Another place has its own limits. */
	send_dsn(server.dsn);
	assert_sent(4, SHIP_DONE);
	wait_ship(0);
	/* Cut to a day. */
	assert_limited(UINT64_C(24) * 3600);
}

/* Of what the broker makes: a limit on chunks is nothing to a V1 profile. */
TEST(tells_of_limits_of_v1)
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

TEST(is_told_of_limits)
{
	start(NULL, plain);
	send_limited_dsn(server.dsn, clock_boot_ns() + 3600 * NS_PER_SEC);
	assert_sent(1, DISCARD_RATE_LIMITED);
	ck_assert_uint_eq(count_requests(), 0);
	send_limited_dsn(server.dsn, clock_boot_ns());
	assert_sent(2, SHIP_DONE);
	wait_ship(0);
}

/*
 * RFC 2606: there is no such name. What the filter has to allow for that
 * depends on the name server's answer, or that there is none.
 */
TEST(looks_up_names)
{
	start_ship();
	send_dsn("https://" KEY "@sentry.invalid/1");
	assert_not_answered(1);
	wait_ship(0);
	/* "Could not resolve host" or "Resolving timed out". */
	assert_logged("esolv");
}

/* A server that never accepts: the connection stands in its queue. */
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

/* The request is under way, not only asked for. */
static void wait_connection(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	ck_assert_int_eq(poll(&p, 1, -1), 1);
}

TEST(drops_the_oldest_of_too_many)
{
	char dsn[64];
	int listening = stall(dsn);

	start_ship();
	send_dsn(dsn);
	send_envelope(1, -1, true);
	wait_connection(listening);
	/* 32 may wait. */
	for (uint64_t seq = 2; seq <= 34; seq++)
		send_envelope(seq, -1, true);
	assert_done(2, DISCARD_QUEUE_OVERFLOW);
	send_dsn("");
	send_envelope(35, -1, false);
	assert_done(35, SHIP_NOTHING);
	close_fd(&listening);
	/* It is the oldest, and its place is taken. */
	assert_done(1, DISCARD_QUEUE_OVERFLOW);
	/* The others have nowhere to go now. */
	for (uint64_t seq = 3; seq <= 34; seq++)
		assert_done(seq, SHIP_NOTHING);
	wait_ship(0);
}

TEST(ends_though_the_server_stalls)
{
	char dsn[64];
	int listening = stall(dsn);

	start_ship();
	send_dsn(dsn);
	send_envelope(1, -1, true);
	send_envelope(2, -1, true);
	wait_connection(listening);
	wait_ship(0);
	assert_logged("2 chunks were not sent: the time is up");
	close_fd(&listening);
}

TEST(those_that_come_too_late_are_told_of_in_one_line)
{
	char dsn[64];
	int listening = stall(dsn);

	/* Nobody listens, and the port stays ours. */
	OK(shutdown(listening, SHUT_RDWR));
	start_ship();
	send_dsn(dsn);
	send_finish(0);
	for (uint64_t seq = 1; seq <= 3; seq++) {
		send_envelope(seq, -1, true);
		assert_done(seq, DISCARD_NETWORK_ERROR);
	}
	wait_ship(0);
	assert_logged("3 chunks were not sent: the time is up");
	close_fd(&listening);
}

/* The text of an item of the n-th request, to be freed; NULL: there is none. */
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

/* The n-th request tells of so many, and of nothing else. */
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

static void send_lost(uint32_t reason, uint32_t kind, uint64_t quantity)
{
	const struct msg_lost m = {
		.h = MSG_HEADER(MSG_LOST),
		.quantity = quantity,
		.reason = reason,
		.kind = kind,
	};

	send_message(&m, sizeof(m), NULL, 0);
}

TEST(tells_of_losses_at_the_end)
{
	start("{\"status\": 500}\n{\"status\": 400}\n", tls);
	assert_sent(1, DISCARD_SEND_ERROR);
	assert_sent(2, DISCARD_SEND_ERROR);
	assert_sent(3, SHIP_DONE);
	/* Not before: 30 seconds have not passed. */
	ck_assert_uint_eq(count_requests(), 3);
	wait_ship(0);
	ck_assert_uint_eq(count_requests(), 4);
	assert_reported(3, "send_error", 2);
}

TEST(tells_of_losses_of_the_broker)
{
	start(NULL, plain);
	send_lost(CLIENT_REPORT_INSUFFICIENT_DATA, ENVELOPE_CHUNK, 3);
	send_lost(CLIENT_REPORT_INSUFFICIENT_DATA, ENVELOPE_CHUNK, 4);
	assert_sent(1, SHIP_DONE);
	wait_ship(0);
	ck_assert_uint_eq(count_requests(), 2);
	assert_reported(1, "insufficient_data", 7);
}

TEST(keeps_on_if_5xx_is_no_answer)
{
	start("{\"status\": 502}\n{\"status\": 503}\n"
	      "{\"status\": 504}\n{\"status\": 500}\n",
	      plain);
	send_dsn_as((struct msg_dsn){.retry_5xx = 1}, server.dsn);
	/* Up to 1, 2 and 4 seconds in between. */
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
	/* Sent all the same. */
	assert_done(1, SHIP_DONE);
	close_fd(&file);
	wait_ship(0);
	assert_logged("No space left");
}

TEST(leaves_signals_to_the_broker)
{
	start_ship();
	send_envelope(1, -1, false);
	assert_done(1, SHIP_NOTHING);
	OK(kill(ship, SIGINT));
	OK(kill(ship, SIGTERM));
	OK(kill(ship, SIGHUP));
	send_envelope(2, -1, false);
	assert_done(2, SHIP_NOTHING);
	wait_ship(0);
}

enum rule {
	RULE_TYPE,
	RULE_SIZE,
	RULE_NO_PAYLOAD,
	RULE_NO_FILE,
	RULE_TOO_MANY,
	RULE_PAYLOAD_SIZE,
	RULE_EMPTY,
	RULE_LARGE,
	RULE_NOT_SEALED,
	RULE_NOT_MEMFD,
	RULE_SEQ,
	RULE_CHUNK_ID,
	RULE_PLATFORM_EMPTY,
	RULE_PLATFORM_END,
	RULE_BOOLEAN,
	RULE_FILE_NONE,
	RULE_FILE_MISSING,
	RULE_FILE_SIZE,
	RULE_FILE_NOT_SEALED,
	RULE_FILE_LARGE,
	RULE_DSN,
	RULE_DSN_END,
	RULE_COMPRESSION,
	RULE_KIND,
	RULE_LOST,
	RULE_LOST_NONE,
	RULE_LOST_KIND,
	RULE_N
};

static void break_envelope(enum rule rule)
{
	const bool for_file = rule >= RULE_FILE_NONE && rule <= RULE_FILE_LARGE;
	struct msg_envelope m = make_envelope(2, for_file, true);
	int fds[] = {make_payload(PAYLOAD, SEALS), STDERR_FILENO,
		     make_payload(FILE_PAYLOAD,
				  rule == RULE_FILE_NOT_SEALED ? SEALS & ~F_SEAL_WRITE : SEALS)};
	size_t size = sizeof(m);
	size_t n_fds = for_file ? 3 : 1;

	m.file_size = for_file ? sizeof(FILE_PAYLOAD) - 1 : 0;

	if (rule == RULE_TYPE)
		m.h.type = MSG_TARGET_ADD;
	else if (rule == RULE_SIZE)
		m.h.size = (uint32_t)(size -= 8);
	else if (rule == RULE_NO_PAYLOAD)
		n_fds = 0;
	else if (rule == RULE_NO_FILE)
		m.to_file = 1;
	else if (rule == RULE_TOO_MANY)
		n_fds = 2;
	else if (rule == RULE_PAYLOAD_SIZE)
		m.size--;
	else if (rule == RULE_SEQ)
		m.seq = 1;
	else if (rule == RULE_CHUNK_ID)
		m.chunk_id[31] = 'G';
	else if (rule == RULE_PLATFORM_EMPTY)
		m.platform[0] = '\0';
	else if (rule == RULE_PLATFORM_END)
		memset(m.platform, 'a', sizeof(m.platform));
	else if (rule == RULE_BOOLEAN)
		m.to_server = 2;
	else if (rule == RULE_FILE_NONE)
		m.to_file = 0;
	else if (rule == RULE_FILE_MISSING)
		n_fds = 2;
	else if (rule == RULE_FILE_SIZE)
		m.file_size++;

	if (rule == RULE_EMPTY || rule == RULE_NOT_SEALED || rule == RULE_LARGE) {
		close_fd(&fds[0]);
		fds[0] =
			make_payload(rule == RULE_EMPTY ? "" : PAYLOAD,
				     rule == RULE_NOT_SEALED ? SEALS & ~F_SEAL_GROW : F_SEAL_WRITE);
	}
	if (rule == RULE_EMPTY)
		m.size = 0;
	if (rule == RULE_LARGE) {
		m.size = 50 * 1000 * 1000 + 1;
		OK(ftruncate(fds[0], (off_t)m.size));
		OK(fcntl(fds[0], F_ADD_SEALS, SEALS));
	}
	if (rule == RULE_FILE_LARGE) {
		close_fd(&fds[2]);
		fds[2] = make_payload("", F_SEAL_WRITE);
		m.file_size = 50 * 1000 * 1000 + 1;
		OK(ftruncate(fds[2], (off_t)m.file_size));
		OK(fcntl(fds[2], F_ADD_SEALS, SEALS));
	}
	if (rule == RULE_NOT_MEMFD) {
		close_fd(&fds[0]);
		fds[0] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		m.size = (uint64_t)lseek(fds[0], 0, SEEK_END);
	}
	send_message(&m, size, fds, n_fds);
	close_fd(&fds[0]);
	close_fd(&fds[2]);
}

/* One line, and the end; what was right before is done. */
TESTS(dies_of_a_broken_rule, RULE_N)
{
	struct msg_dsn dsn = {.h = MSG_HEADER(MSG_DSN)};
	struct ipc_message m;

	start_ship();
	send_envelope(1, -1, false);
	assert_done(1, SHIP_NOTHING);
	if (_i == RULE_DSN) {
		send_dsn("https://" KEY "\r\n@host/1");
	} else if (_i == RULE_DSN_END) {
		memset(dsn.dsn, 'a', sizeof(dsn.dsn));
		send_message(&dsn, sizeof(dsn), NULL, 0);
	} else if (_i == RULE_COMPRESSION) {
		send_dsn_as((struct msg_dsn){.compression = COMPRESSION_N}, "");
	} else if (_i == RULE_KIND) {
		send_dsn_as((struct msg_dsn){.kind = ENVELOPE_KIND_N}, "");
	} else if (_i == RULE_LOST) {
		send_lost(CLIENT_REPORT_REASON_N, ENVELOPE_CHUNK, 1);
	} else if (_i == RULE_LOST_NONE) {
		send_lost(CLIENT_REPORT_SEND_ERROR, ENVELOPE_CHUNK, 0);
	} else if (_i == RULE_LOST_KIND) {
		send_lost(CLIENT_REPORT_SEND_ERROR, ENVELOPE_KIND_N, 1);
	} else {
		break_envelope((enum rule)_i);
	}
	ck_assert_int_eq(ipc_recv(ship_fd, &m), 0);
	wait_ship(1);
	assert_logged("sentry-profd-ship: a message of the broker: "
		      "Protocol error\n");
}

/* The same envelope unbroken is taken: else the test above shows nothing. */
TEST(takes_the_rule_kept)
{
	start_ship();
	send_envelope(1, -1, false);
	assert_done(1, SHIP_NOTHING);
	break_envelope(RULE_N);
	assert_done(2, SHIP_NOTHING);
	wait_ship(0);
}

TEST(tells_its_version)
{
	exec_ship(-1, "--version");
	wait_ship(0);
	ck_assert_str_eq(buf_string(&log_text), "sentry-profd-ship " SENTRY_PROFD_VERSION "\n");
}
