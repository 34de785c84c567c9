/*
 * The payloads of a chunk that the broker gets: one for the server, one for a
 * file, or both.
 */
#include "daemon/unwind/chunk.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/msg/msg_io.h"
#include "lib/base/util.h"
#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

static int broker;
static struct good_profile good;
static struct msg_session_open session;

/* Takes the number MSG_FD before Check opens a file with it. */
__attribute__((constructor)) static void take_descriptor(void)
{
	(void)dup2(STDERR_FILENO, MSG_FD);
}

static void set_up(void)
{
	int fds[2];

	OK(ipc_pair(fds));
	broker = fds[0];
	OK(fcntl(broker, F_SETFL, O_NONBLOCK));
	ck_assert_int_eq(dup2(fds[1], MSG_FD), MSG_FD);
	close_fd(&fds[1]);
	chunk_init();
	good_profile_init(&good);
	session = (struct msg_session_open){
		.target = 7,
		.pid = 100,
		.profiler_id = "0123456789abcdef0123456789abcdef",
		.platform = "rust",
	};
}

static void tear_down(void)
{
	close_fd(&broker);
}

/* Returns the payload in descriptor i of m, and checks its size. */
static const char *payload_of(const struct ipc_message *m, size_t i, uint64_t size)
{
	static char text[65536];
	const ssize_t n = pread(m->fds[i], text, sizeof(text) - 1, 0);

	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq((uint64_t)n, size);
	text[n] = '\0';
	return text;
}

/* Returns true if the payload has thread states and code_ids, as only payloads for files have. */
static bool is_for_a_file(const char *payload)
{
	const bool has_states = strstr(payload, "\"state\"") != NULL;

	ck_assert(has_states == (strstr(payload, "\"code_id\"") != NULL));
	return has_states;
}

static void send_chunk(struct ipc_message *ret)
{
	static const struct chunk_program program = {
		.name = "a",
		.release = "a@1",
		.environment = "production",
	};

	chunk_send(&session, 0, &program, &good.p);
	ck_assert_int_eq(ipc_recv(broker, ret), 1);
	ck_assert_uint_eq(msg_type_of(ret), MSG_CHUNK);
}

static const struct {
	bool for_server, for_file;
	bool first_is_for_file;
	size_t n;
} cases[] = {
	{true, false, false, 1},
	{false, true, true, 1},
	{true, true, false, 2},
	{false, false, false, 1},
};

FIXTURE(set_up, tear_down)

TESTS(a_file_gets_a_payload_of_its_own_beside_the_server_s, array_size(cases))
{
	const struct msg_chunk *chunk;
	struct ipc_message m;

	session.for_server = cases[_i].for_server;
	session.for_file = cases[_i].for_file;
	send_chunk(&m);
	chunk = (const void *)m.bytes;
	ck_assert_uint_eq(m.n_fds, cases[_i].n);
	ck_assert(chunk->for_server == cases[_i].for_server);
	ck_assert(is_for_a_file(payload_of(&m, 0, chunk->size)) == cases[_i].first_is_for_file);
	ck_assert((chunk->file_size > 0) == (cases[_i].n == 2));
	if (m.n_fds == 2)
		ck_assert(is_for_a_file(payload_of(&m, 1, chunk->file_size)));
	ipc_close_fds(&m);
}

/* The transaction is in the last descriptor. */
TESTS(spotlight_gets_the_payload_of_files_and_a_transaction, 2)
{
	const struct msg_chunk *chunk;
	struct ipc_message m;
	const char *text;
	const bool both = _i == 1;

	session.for_server = both;
	session.for_spotlight = true;
	send_chunk(&m);
	chunk = (const void *)m.bytes;
	ck_assert_uint_eq(m.n_fds, both ? 3 : 2);
	ck_assert((chunk->file_size > 0) == both);
	ck_assert(is_for_a_file(payload_of(&m, both, both ? chunk->file_size : chunk->size)));
	text = payload_of(&m, m.n_fds - 1, chunk->anchor_size);
	HAS(text, "\"transaction\":\"a 100\"");
	HAS(text, "\"profile\":{\"profiler_id\":"
		  "\"0123456789abcdef0123456789abcdef\"}");
	HAS(text, "\"trace_id\":"
		  "\"0123456789abcdef0123456789abcdef\"");
	ipc_close_fds(&m);
}

/* A V1 profile has no members for thread states and code_ids, so a file gets the same one. */
TESTS(a_v1_profile_has_one_payload_for_all_destinations, array_size(cases))
{
	const struct msg_chunk *chunk;
	struct ipc_message m;

	memcpy(session.transaction, "x", sizeof("x"));
	session.for_server = cases[_i].for_server;
	session.for_file = cases[_i].for_file;
	session.for_spotlight = true;
	send_chunk(&m);
	chunk = (const void *)m.bytes;
	ck_assert_uint_eq(m.n_fds, 1);
	ck_assert_uint_eq(chunk->anchor_size, 0);
	ck_assert_uint_eq(chunk->file_size, 0);
	ck_assert_uint_gt(chunk->transaction_size, 0);
	ck_assert(!is_for_a_file(payload_of(&m, 0, chunk->size)));
	ipc_close_fds(&m);
}
