/*
 * Messages that cross: a child sends a message before it has read one of the broker, which has
 * changed what the message is about. docs/ARCHITECTURE.md has the table.
 */
#include "daemon/broker/inbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/config/config_fault.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/sealed.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind *unwind;
static struct instance instance;
static struct run *run;
static int end;
static time_t later_s; /* added to each clock */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	ret->tv_sec += later_s;
	return r;
}

static struct heartbeat beats;

/* A capture, and an unwind process with one target. */
static void set_up(void)
{
	build_broker(&b);
	OK(loop_new(&b.modules.state.loop));
	children_init(&b.modules.children);
	b.modules.children.heartbeat = &beats;
	b.modules.children.capture.pid = make_sleeper();
	b.modules.children.capture.state = CHILD_READY;
	unwind = calloc(1, sizeof(*unwind));
	ck_assert_ptr_nonnull(unwind);
	end = build_unwind(&b, unwind);
	unwind->child.pid = make_sleeper();
	unwind->id = 1;
	instance = (struct instance){.pidfd = -1};
	run = build_run(&b, &instance, unwind);
	unwind->newest_run = run->id;
}

FIXTURE(set_up, NULL)

/* Returns a sealed memfd of one byte. */
static int make_payload(void)
{
	struct sealed s;
	uint64_t size;
	int fd;

	OK(sealed_open(&s, "payload"));
	ck_assert_int_eq(fputc('x', s.out), 'x');
	OK(sealed_close(&s, 0, &fd, &size));
	return fd;
}

/* The broker receives this message from the child. */
static void receive(struct child *child, const void *message, size_t size)
{
	struct ipc_message m = {.size = size, .n_fds = 1, .fds = {-1, -1, -1, -1}};

	ck_assert_uint_le(size, sizeof(m.bytes));
	memcpy(m.bytes, message, size);
	m.fds[0] = make_payload();
	inbox_handle(&b, child, &m);
	ipc_close_fds(&m);
}

static void receive_id(struct child *child, enum msg_type type, uint32_t id)
{
	const struct msg_id m = {.h = {.type = type, .size = sizeof(m)}, .id = id};

	receive(child, &m, sizeof(m));
}

/* unwind -> broker: messages about a target. */

static const struct {
	enum msg_type type;
	uint32_t size;
	size_t target_at;
} about_target[] = {
#define ABOUT(type, name, member)                                \
	{                                                        \
		type, type##_SIZE, offsetof(struct name, member) \
	}
	ABOUT(MSG_FILE_REQUEST, msg_file_request, target),
	ABOUT(MSG_CHUNK, msg_chunk, target),
	ABOUT(MSG_CHUNK_LOST, msg_chunk_lost, target),
	ABOUT(MSG_SESSION_OPENED, msg_id, id),
	ABOUT(MSG_SESSION_CLOSED, msg_id, id),
	ABOUT(MSG_UNWIND_STATS, msg_unwind_stats, target),
	ABOUT(MSG_RECORDING_CHUNK, msg_recording_chunk, target),
	ABOUT(MSG_RECORDING_LOST, msg_recording, target),
	ABOUT(MSG_RECORDING_CLOSED, msg_recording, target),
#undef ABOUT
};

static void receive_about(size_t i, uint32_t id)
{
	uint8_t m[4096] = {0};

	memcpy(m, &(struct msg_header){about_target[i].type, about_target[i].size},
	       sizeof(struct msg_header));
	memcpy(m + about_target[i].target_at, &id, sizeof(id));
	receive(&unwind->child, m, about_target[i].size);
}

/* For example MSG_RECORDING_CLOSED, since unwind got MSG_RECORDING_OPEN after RECORD_END. */
TESTS(a_message_about_a_target_that_has_ended_is_ignored, array_size(about_target))
{
	const uint32_t id = run->id;

	run->is_retired = true;
	receive_about((size_t)_i, id);
	targets_sweep(&b.modules.targets);
	receive_about((size_t)_i, id);
	ck_assert_int_eq(unwind->child.state, CHILD_READY);
}

TESTS(a_message_about_a_target_that_the_process_never_had_breaks_a_rule, array_size(about_target))
{
	receive_about((size_t)_i, run->id + 1);
	ck_assert_int_eq(unwind->child.state, CHILD_KILLED);
}

TESTS(a_message_about_no_target_breaks_a_rule, array_size(about_target))
{
	receive_about((size_t)_i, 0);
	ck_assert_int_eq(unwind->child.state, CHILD_KILLED);
}

TESTS(a_message_about_a_target_of_another_process_breaks_a_rule, array_size(about_target))
{
	struct unwind other = {.id = 2};

	run->unwind = &other;
	receive_about((size_t)_i, run->id);
	ck_assert_int_eq(unwind->child.state, CHILD_KILLED);
}

/* unwind waits for the answer. */
TEST(a_request_for_a_file_of_a_target_that_has_ended_is_answered)
{
	const struct msg_file_reply *reply;
	struct ipc_message m;

	run->is_retired = true;
	receive_about(0, run->id);
	ck_assert_int_eq(ipc_recv(end, &m), 1);
	reply = msg_as(&m, MSG_FILE_REPLY);
	ck_assert_ptr_nonnull(reply);
	ck_assert_int_eq(reply->error, ESRCH);
}

/* The target has a place until unwind has answered. */
TEST(a_target_ends_while_its_session_is_opened)
{
	run->session = SESSION_ASKED;
	unwind->sessions_asked = 1;
	run->phase = RUN_CLOSED;
	ck_assert(!run_is_over(run));
	receive_id(&unwind->child, MSG_SESSION_OPENED, run->id);
	ck_assert_uint_eq(unwind->sessions_asked, 0);
	ck_assert(run_is_over(run));
	ck_assert_int_eq(unwind->child.state, CHILD_READY);
}

/* The peer has gone, and the recording with it. */
TEST(messages_about_a_recording_that_has_ended_are_dropped)
{
	struct msg_recording_chunk chunk = {
		.h = MSG_HEADER(MSG_RECORDING_CHUNK),
		.target = run->id,
		.recording = 1,
		.size = 1,
	};

	receive(&unwind->child, &chunk, sizeof(chunk));
	receive_about(7, run->id);
	receive_about(8, run->id);
	ck_assert_int_eq(unwind->child.state, CHILD_READY);
	chunk.size = 2; /* than it has */
	receive(&unwind->child, &chunk, sizeof(chunk));
	ck_assert_int_eq(unwind->child.state, CHILD_KILLED);
}

/* capture -> broker: targets and processes. */

/* unwind reads the target's RECORD_END before the broker reads the state. */
TEST(unwind_closes_a_session_before_capture_reports_the_end)
{
	const struct msg_target_state m = {
		.h = MSG_HEADER(MSG_TARGET_STATE),
		.target = run->id,
		.state = TARGET_GONE,
	};

	run->in_capture = true;
	receive_id(&unwind->child, MSG_SESSION_CLOSED, run->id);
	ck_assert_int_eq(run->phase, RUN_CLOSED);
	ck_assert(!run_is_over(run));
	receive(&b.modules.children.capture, &m, sizeof(m));
	ck_assert(run_is_over(run));
	ck_assert_int_eq(b.modules.children.capture.state, CHILD_READY);
}

TEST(a_process_ends_while_its_birth_is_reported)
{
	b.modules.state.options.children = true;
	receive_id(&b.modules.children.capture, MSG_CHILD_BORN, INT32_MAX);
	ck_assert_uint_eq(b.modules.targets.n_instances, 0);
	ck_assert_int_eq(b.modules.children.capture.state, CHILD_READY);
}

/* capture -> broker: the rings. */

static void receive_of_capture(enum msg_type type)
{
	receive_id(&b.modules.children.capture, type, 1);
}

/* Makes the unwind process end, as one that is not needed any more. */
static void unwind_leaves(void)
{
	unwind->child.is_leaving = true;
	child_close(&unwind->child);
	(void)kill(unwind->child.pid, SIGKILL);
	ck_assert_int_eq(waitpid(unwind->child.pid, NULL, 0), unwind->child.pid);
	unwind->child.pid = 0;
	run->is_retired = true;
	targets_sweep(&b.modules.targets);
}

/* Until capture has made the ring, no other unwind process gets its number. */
TEST(an_unwind_process_ends_while_its_ring_is_made)
{
	unwind->rings_awaited = 1;
	unwind_leaves();
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 1);
	receive_of_capture(MSG_RING_MADE);
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 0);
	ck_assert_int_eq(b.modules.children.capture.state, CHILD_READY);
	receive_of_capture(MSG_RING_MADE);
	ck_assert_int_eq(b.modules.children.capture.state, CHILD_KILLED);
}

/* Then nothing is awaited, since its successor gets the requests anew. */
TEST(capture_ends_while_it_makes_the_ring_of_an_unwind_process_that_has_ended)
{
	unwind->rings_awaited = 1;
	unwind_leaves();
	(void)kill(b.modules.children.capture.pid, SIGKILL);
	b.modules.children.capture.pid = 0;
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 0);
}

/* The first ring was made for its predecessor: the second one is passed on. */
TEST(an_unwind_process_is_replaced_while_its_ring_is_made)
{
	unwind->rings_awaited = 2;
	unwind->link_fd = dup(end);
	receive_of_capture(MSG_RING_MADE);
	ck_assert_int_ge(unwind->link_fd, 0);
	receive_of_capture(MSG_RING_MADE);
	ck_assert_int_lt(unwind->link_fd, 0);
}

TEST(an_unwind_process_is_replaced_while_its_ring_is_reported_as_broken)
{
	unwind->ring_due = true;
	receive_of_capture(MSG_RING_BROKEN);
	ck_assert_int_eq(unwind->child.state, CHILD_READY);
	unwind->ring_due = false;
	unwind->rings_awaited = 1;
	receive_of_capture(MSG_RING_BROKEN);
	ck_assert_int_eq(unwind->child.state, CHILD_READY);
	receive_of_capture(MSG_RING_MADE);
	receive_of_capture(MSG_RING_BROKEN);
	ck_assert_int_eq(unwind->child.state, CHILD_KILLED);
}

TEST(an_unwind_process_ends_while_its_ring_is_reported_as_broken)
{
	unwind_leaves();
	children_sweep(&b.modules.children);
	receive_of_capture(MSG_RING_BROKEN);
	ck_assert_int_eq(b.modules.children.capture.state, CHILD_READY);
}

/* ship -> broker: the answer to a probe. */

#define DSN "https://key@host/1"

static struct ship *add_ship(void)
{
	static struct ship s;

	build_ship(&b, &s);
	memcpy(s.dsn, DSN, sizeof(DSN));
	s.child.pid = make_sleeper();
	s.child.state = CHILD_READY;
	s.child.fd = unwind->child.fd;
	unwind->child.fd = -1;
	return &s;
}

/* Returns the number of MSG_PROBE that the ship has got since the last call. */
static unsigned int probes(void)
{
	struct ipc_message m;
	unsigned int n = 0;
	char byte;

	while (recv(end, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0) {
		ck_assert_int_eq(ipc_recv(end, &m), 1);
		n += msg_type_of(&m) == MSG_PROBE;
	}
	return n;
}

/* Begins an inspection, and waits until it is over, if it is to be. */
static void inspect(bool to_end)
{
	static const struct config_faults none;

	/* Of the last inspection; the daemon makes at most one for its options. */
	free(b.requests.inspector.current);
	OK(inspect_options(&b.requests.inspector, &none));
	later_s += to_end ? 1000 : 0;
	inspect_check(&b.requests.inspector);
	ck_assert(inspect_is_over(&b.requests.inspector) == to_end);
}

/* The first ship is there already; the second one cannot be started here. */
TEST(an_inspection_marks_a_ship_that_it_starts)
{
	static struct section_config section = {.dsn = "https://key@host/2"};
	struct ship *s = add_ship();

	ck_assert_int_eq(dup2(suite_file(""), STDOUT_FILENO), STDOUT_FILENO);
	memcpy(b.modules.state.options.config.dsn, DSN, sizeof(DSN));
	b.modules.state.options.config.sections = &section;
	b.modules.state.options.config.n_sections = 1;
	inspect(true);
	ck_assert_uint_eq(b.modules.children.n_ships, 2);
	ck_assert_uint_eq(s->only_probed_ns, 0);
	ck_assert_uint_gt(b.modules.children.ships[1]->only_probed_ns, 0);
}

TEST(an_inspection_ends_before_the_answer_to_its_probe)
{
	const struct msg_probed m = {.h = MSG_HEADER(MSG_PROBED), .status = 200};
	struct ship *s = add_ship();

	ck_assert_int_eq(dup2(suite_file(""), STDOUT_FILENO), STDOUT_FILENO);
	memcpy(b.modules.state.options.config.dsn, DSN, sizeof(DSN));
	inspect(true);
	ck_assert_uint_eq(probes(), 1);
	/* The next one waits for the same answer. */
	inspect(false);
	ck_assert_uint_eq(probes(), 0);
	receive(&s->child, &m, sizeof(m));
	inspect_check(&b.requests.inspector);
	ck_assert(inspect_is_over(&b.requests.inspector));
	ck_assert_int_eq(s->probed.status, 200);
	ck_assert_int_eq(s->child.state, CHILD_READY);
	receive(&s->child, &m, sizeof(m));
	ck_assert_int_eq(s->child.state, CHILD_KILLED);
}
