/* ship ends at a message of its broker that breaks a rule. */
#include "tests/unit/ship/process.h"

#define FILE_PAYLOAD "{\"what\":\"only the file says\"}"

FIXTURE(setup, teardown)

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

/* ship handles the valid message, and ends with one line at the invalid one. */
TESTS(ends_at_an_invalid_message, RULE_N)
{
	struct msg_dsn dsn = {.h = MSG_HEADER(MSG_DSN)};
	struct ipc_message m;

	start_ship();
	send_envelope(1, -1, false);
	assert_done(1, SHIP_NOT_SENT);
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
	assert_logged("sentry-profd-ship: cannot handle a message from the parent process: "
		      "Protocol error\n");
}

/* The same message without a fault is accepted: so it is the fault that ends ship. */
TEST(accepts_a_valid_message)
{
	start_ship();
	send_envelope(1, -1, false);
	assert_done(1, SHIP_NOT_SENT);
	break_envelope(RULE_N);
	assert_done(2, SHIP_NOT_SENT);
	wait_ship(0);
}
