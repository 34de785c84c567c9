/*
 * sentry-profd-ship as a child process of a test, which plays the broker and, with server.h, has a
 * server. ship runs under the seccomp filter that kills.
 */
#ifndef TESTS_UNIT_SHIP_PROCESS_H
#define TESTS_UNIT_SHIP_PROCESS_H

#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

#include "daemon/common/privileges.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_io.h"
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

/* The uid of ship if the test runs as root. */
#define NOBODY 65534

static struct server server;
static struct buf log_text;
static pid_t ship;
static int ship_fd = -1;
static int log_fd = -1;
static uint64_t limited_until_ns; /* of the last MSG_LIMITED */
static struct msg_denied denied;  /* the last MSG_DENIED */

/*
 * The path of ship: in the directory BUILD of the environment, else three levels above this
 * program. This test may have sanitizers; ship must have none, because they make system calls that
 * the filter forbids.
 */
static inline void ship_path(char ret[static PATH_MAX])
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

/* Starts ship with fd as its descriptor 3, and with an argument unless that is NULL. */
static inline void exec_ship(int fd, const char *argument)
{
	char path[PATH_MAX];

	ship_path(path);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	ck_assert_int_ge(log_fd, 0);
	/* The offset is shared: with O_APPEND ship writes at the end wherever this test reads. */
	OK(fcntl(log_fd, F_SETFL, O_APPEND));
	ship = fork();
	ck_assert_int_ge(ship, 0);
	if (ship != 0)
		return;
	/* A supplementary group that ship has to give up. */
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

static inline void send_message(const void *m, size_t size, const int *fds, size_t n_fds)
{
	OK(ipc_send(ship_fd, m, size, fds, n_fds));
}

/* m: the other fields of the message. */
static inline void send_dsn_as(struct msg_dsn m, const char *text)
{
	m.h = (struct msg_header)MSG_HEADER(MSG_DSN);
	(void)snprintf(m.dsn, sizeof(m.dsn), "%s", text);
	send_message(&m, sizeof(m), NULL, 0);
}

static inline void send_dsn(const char *text)
{
	send_dsn_as((struct msg_dsn){0}, text);
}

/* Receives ship's first message. */
static inline void wait_ready(void)
{
	struct ipc_message m;
	struct msg_id ready;

	ck_assert_int_eq(ipc_recv(ship_fd, &m), 1);
	ck_assert_uint_eq(m.size, sizeof(ready));
	memcpy(&ready, m.bytes, sizeof(ready));
	ck_assert_uint_eq(ready.h.type, MSG_READY);
}

/* ca: path of a file of authorities, which the broker opens for ship; "": none. */
static inline void start_trusting_ship(const char *ca)
{
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT),
		.number = msg_number(),
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

static inline void start_ship(void)
{
	start_trusting_ship("");
}

/* Waits for ship's end, checks its status, and reads its log into log_text. */
static inline void wait_ship(int expected)
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

/* Checks that ship has logged this text. Call it after wait_ship(). */
static inline void assert_logged(const char *text)
{
	ck_assert_msg(strstr(buf_string(&log_text), text) != NULL, "no \"%s\" in: %s", text,
		      buf_string(&log_text));
}

static inline void setup(void)
{
	unsetenv("http_proxy");
	unsetenv("https_proxy");
	unsetenv("all_proxy");
	buf_init(&log_text, 1024 * 1024);
}

static inline void teardown(void)
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

static inline int make_payload(const char *text, int seals)
{
	int fd = suite_file(text);

	OK(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static inline struct msg_envelope make_envelope(uint64_t seq, bool to_file, bool to_server)
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

/* file: output file, or -1. */
static inline void send_envelope(uint64_t seq, int file, bool to_server)
{
	struct msg_envelope m = make_envelope(seq, file >= 0, to_server);
	int fds[] = {make_payload(PAYLOAD, SEALS), file};

	send_message(&m, sizeof(m), fds, file >= 0 ? 2 : 1);
	close_fd(&fds[0]);
}

/*
 * Receives the next message, which must have this type and size. MSG_LIMITED and MSG_DENIED may
 * come in between and are noted.
 */
static inline void receive(uint32_t type, void *ret, size_t size)
{
	struct msg_number limited;
	struct msg_header header;
	struct ipc_message m;

	for (;;) {
		if (ipc_recv(ship_fd, &m) != 1)
			wait_ship(-1);
		ck_assert_uint_eq(m.n_fds, 0);
		memcpy(&header, m.bytes, sizeof(header));
		if (header.type == type)
			break;
		if (header.type == MSG_DENIED) {
			memcpy(&denied, m.bytes, sizeof(denied));
			continue;
		}
		if (header.type != MSG_LIMITED)
			break;
		memcpy(&limited, m.bytes, sizeof(limited));
		limited_until_ns = limited.n;
	}
	ck_assert_uint_eq(m.size, size);
	ck_assert_uint_eq(header.type, type);
	memcpy(ret, m.bytes, size);
}

/* Receives the MSG_ENVELOPE_DONE of this envelope, and checks its result. */
static inline void assert_done(uint64_t seq, uint32_t result)
{
	struct msg_envelope_done m;

	receive(MSG_ENVELOPE_DONE, &m, sizeof(m));
	ck_assert_uint_eq(m.seq, seq);
	ck_assert_uint_eq(m.result, result);
}

static inline void send_lost(uint32_t reason, uint32_t kind, uint64_t quantity)
{
	const struct msg_lost m = {
		.h = MSG_HEADER(MSG_LOST),
		.quantity = quantity,
		.reason = reason,
		.kind = kind,
	};

	send_message(&m, sizeof(m), NULL, 0);
}

#endif
