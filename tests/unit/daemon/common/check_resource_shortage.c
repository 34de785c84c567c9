/* The behaviour of the broker when descriptors are short. */
#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/common/resource_shortage.h"
#include "lib/base/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/msg/msg_io.h"
#include "lib/base/loop.h"
#include "tests/unit/daemon/full.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct state state;
static struct children c;
static int end;
static size_t messages;
static int last_fd;
static struct full full;

static void take(void *ctx, struct child *child, struct ipc_message *m)
{
	(void)ctx;
	(void)child;
	messages++;
	close_fd(&last_fd);
	last_fd = ipc_take_fd(m, 0);
}

static const struct child_type type = {.name = "capture"};

static void set_up(void)
{
	int pair[2];

	memset(&state, 0, sizeof(state));
	memset(&c, 0, sizeof(c));
	c.state = &state;
	c.events.message = take;
	messages = 0;
	last_fd = -1;
	OK(loop_new(&state.loop));
	OK(ipc_pair(pair));
	OK(fcntl(pair[0], F_SETFL, O_NONBLOCK));
	c.capture = (struct child){
		.children = &c, .type = &type, .fd = pair[0], .pid = 1, .state = CHILD_READY};
	OK(loop_add(state.loop, pair[0], child_on_readable, &c.capture, &c.capture.source));
	end = pair[1];
}

static void tear_down(void)
{
	loop_remove(state.loop, &c.capture.source);
	loop_free(state.loop);
	close_fd(&c.capture.fd);
	close_fd(&end);
	close_fd(&last_fd);
}

FIXTURE(set_up, tear_down)

/* Without room the kernel drops the descriptor, and the broker would blame the sender. */
TEST(a_message_is_read_only_while_a_descriptor_is_free)
{
	const uint64_t before = resource_shortage_count();
	int fd = 0;

	OK(ipc_send(end, "x", 1, &fd, 1));
	OK(ipc_send(end, "y", 1, NULL, 0));
	log_capture_begin();
	full_but(&full, 0);
	for (int i = 0; i < 5; i++)
		OK(loop_run_once(state.loop, 0));
	ck_assert_uint_eq(messages, 0);
	ck_assert_int_eq(c.capture.state, CHILD_READY);
	ck_assert_uint_eq(resource_shortage_count(), before + 1);
	loop_resume(state.loop);
	OK(loop_run_once(state.loop, 0));
	ck_assert_uint_eq(messages, 0);
	full_end(&full);
	ck_assert_uint_eq(log_capture_end("capture waits"), 1);
	loop_resume(state.loop);
	OK(loop_run_once(state.loop, 0));
	ck_assert_uint_eq(messages, 1);
	ck_assert_int_ge(last_fd, 0);
	OK(loop_run_once(state.loop, 0));
	ck_assert_uint_eq(messages, 2);
}

/* A chunk, for example, comes with two. */
TEST(a_message_is_read_only_while_all_its_descriptors_have_room)
{
	int fds[2] = {0, 0};

	OK(ipc_send(end, "x", 1, fds, 2));
	log_capture_begin();
	full_but(&full, 1);
	OK(loop_run_once(state.loop, 0));
	full_end(&full);
	ck_assert_uint_le(log_capture_end("breaks the rules"), 0);
	ck_assert_uint_eq(messages, 0);
	ck_assert_int_eq(c.capture.state, CHILD_READY);
	loop_resume(state.loop);
	OK(loop_run_once(state.loop, 0));
	ck_assert_uint_eq(messages, 1);
}

TEST(a_shortage_is_reported_while_a_message_may_have_too_many_descriptors)
{
	OK(resource_shortage_check_descriptors());
	full_but(&full, 0);
	ck_assert_int_eq(resource_shortage_check_descriptors(), -EMFILE);
	full_end(&full);
	full_but(&full, IPC_FDS_MAX - 1);
	ck_assert_int_eq(resource_shortage_check_descriptors(), -EMFILE);
	full_end(&full);
	full_but(&full, IPC_FDS_MAX);
	OK(resource_shortage_check_descriptors());
	full_end(&full);
	OK(resource_shortage_check_descriptors());
	ck_assert(resource_shortage_is(EMFILE) && resource_shortage_is(ENFILE) &&
		  resource_shortage_is(ENOMEM));
	ck_assert(!resource_shortage_is(0) && !resource_shortage_is(ESRCH) &&
		  !resource_shortage_is(EPERM));
}

/* children_check() tries to start the process again. */
TEST(starting_a_child_is_tried_again_after_waits_that_double)
{
	struct child *child = &c.capture;
	const uint64_t before = resource_shortage_count();

	tear_down();
	child_close(child);
	child->pid = 0;
	OK(loop_new(&state.loop));
	children_init(&c);
	child->started_ns = 1; /* the last process has lived for a long time */
	full_but(&full, 0);
	for (uint32_t i = 1; i <= 5; i++) {
		child->restart_ns = 1;
		children_check(&c);
		ck_assert_int_eq(child->pid, 0);
		ck_assert_uint_eq(child->failures, i);
		ck_assert_uint_eq(resource_shortage_count(), before + i);
	}
	full_end(&full);
	ck_assert_uint_gt(child->restart_ns, child->started_ns);
	end = -1;
}
