/* What is logged about processes that cannot be attached. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/msg/msg_capture.h"
#include "lib/base/clock.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct heartbeat heartbeat;
static struct instance instance;

/* A process that ended after it was found. */
static void set_up_ended_process(void)
{
	build_broker(&b);
	b.modules.children.heartbeat = &heartbeat;
	instance = (struct instance){.targets = &b.modules.targets, .pid = fork()};
	if (instance.pid == 0)
		_exit(0);
	ck_assert_int_gt(instance.pid, 0);
	instance.pidfd = (int)syscall(SYS_pidfd_open, instance.pid, 0);
	ck_assert_int_ge(instance.pidfd, 0);
	ck_assert_int_eq(waitpid(instance.pid, NULL, 0), instance.pid);
	instance.life = INSTANCE_ENDED;
	OK(targets_open_run(&b.modules.targets, &instance, 0, false));
}

static void tear_down(void)
{
	(void)close(instance.pidfd);
}

static void refuse(int error)
{
	const struct msg_target_state m = {
		.target = instance.run->id, .state = TARGET_REFUSED, .error = error};

	attach_on_state(&b.modules.targets, &m);
}

/* Ends the process: capture was too late, or there was no capture. */
static void report_end(bool is_asked)
{
	if (is_asked) {
		instance.run->in_capture = true;
		refuse(ESRCH);
	} else {
		instance.run->attach_due = true;
		attach_check(&b.modules.targets);
	}
	ck_assert(instance.run->phase == RUN_CLOSED);
}

static const struct {
	enum instance_origin origin;
	bool was_attached;
	unsigned int lines;
} kinds[] = {
	{.lines = 0}, /* the process belongs to a section */
	{.origin = INSTANCE_GIVEN, .lines = 1},
	{.origin = INSTANCE_ATTACHED, .lines = 1},
	{.origin = INSTANCE_GIVEN, .was_attached = true, .lines = 0},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

FIXTURE(NULL, tear_down)

TESTS(the_end_before_the_attachment_is_logged_for_named_processes, 2 * KINDS)
{
	const size_t kind = (size_t)_i / 2;

	set_up_ended_process();
	instance.origin = kinds[kind].origin;
	instance.was_attached = kinds[kind].was_attached;
	log_capture_begin();
	report_end(_i % 2 != 0);
	ck_assert_uint_eq(log_capture_end("\n"), kinds[kind].lines);
}

/* The parent crashes just after capture was started again. */
TEST(a_profiled_process_that_capture_refuses_for_a_time_is_tried_again)
{
	set_up_ended_process();
	instance.life = INSTANCE_LIVES;
	instance.run->phase = RUN_PROFILED;
	refuse(ECANCELED);
	ck_assert(run_is_open(instance.run));
	instance.run->retry_ns = 1;
	attach_check(&b.modules.targets);
	ck_assert(instance.run->attach_due);
}

/* Errors that a user can do something about are logged. */
TEST(an_error_that_the_user_can_avoid_is_logged)
{
	set_up_ended_process();
	log_capture_begin();
	refuse(ENOEXEC);
	ck_assert_uint_eq(log_capture_end("is a 32-bit program"), 1);
}
