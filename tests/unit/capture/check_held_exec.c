/* A process is held at its exec until the caller has decided about the program. */
#include <signal.h>
#include <string.h>

#include "lib/capture/detach.h"
#include "lib/capture/held_exec.h"
#include "lib/capture/state.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static struct live l;

/* Has the target execute a program. A thread that is not the leader executes it. */
static void begin(void)
{
	memset(&l, 0, sizeof(l));
	l.holds_execs = true;
	live_start(&l, "cap_threads", NULL, NULL);
	live_open(&l, 1u << 24);
	live_attach(&l);
	(void)live_ask(&l, "busy 2", "ok");
	live_ticks(&l, 3);
	live_say(&l, "exec");
	while (l.executed == 0)
		live_wait(&l);
	ck_assert_int_eq(l.executed, l.pid);
	ck_assert(capture_holds_execs(l.capture));
}

static void tear_down(void)
{
	live_end(&l);
}

FIXTURE(begin, tear_down)

TEST(a_held_process_stays_stopped_and_has_no_ticks)
{
	const uint64_t expected = l.counters.expected;

	for (int i = 0; i < 3; i++)
		live_tick(&l);
	ck_assert_int_eq(live_state(l.pid), 't');
	ck_assert_uint_eq(l.counters.expected, expected);
	ck_assert_uint_eq(l.execs, 0);
}

TEST(a_process_goes_on_as_a_tracee)
{
	capture_decide_exec(l.capture, l.pid, false);
	ck_assert(!capture_holds_execs(l.capture));
	ck_assert_uint_eq(l.execs, 1);
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	live_ticks(&l, 3);
	ck_assert_int_ne(live_status(l.pid, "TracerPid:"), 0);
	live_check_sum(&l);
}

TEST(a_process_is_left_before_its_first_instruction)
{
	capture_decide_exec(l.capture, l.pid, true);
	ck_assert(!capture_holds_execs(l.capture));
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), 0);
	ck_assert_uint_eq(l.gone, 1);
	live_read(&l);
	ck_assert(l.ended);
}

TEST(a_process_without_a_decision_is_left_after_a_second)
{
	capture_leave_overdue_execs(l.capture);
	ck_assert(capture_holds_execs(l.capture));
	live_later(HELD_EXEC_NS);
	capture_leave_overdue_execs(l.capture);
	ck_assert(!capture_holds_execs(l.capture));
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	ck_assert_int_eq(live_status(l.pid, "TracerPid:"), 0);
	ck_assert_uint_eq(l.gone, 1);
}

TEST(a_held_process_can_be_killed)
{
	OK(kill(l.pid, SIGKILL));
	while (l.gone == 0)
		live_wait(&l);
	ck_assert(!capture_holds_execs(l.capture));
	/* A decision that comes too late has no effect. */
	capture_decide_exec(l.capture, l.pid, true);
}

TEST(a_decision_to_leave_a_process_that_is_not_held_removes_the_target)
{
	capture_decide_exec(l.capture, l.pid, false);
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	capture_decide_exec(l.capture, l.pid, true);
	ck_assert(capture_is_detaching(l.capture));
}

/* A trusted program is executed again without a question. */
TEST(a_trusted_file_is_not_held_again)
{
	capture_trust_exec(l.capture, l.pid);
	capture_decide_exec(l.capture, l.pid, false);
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	l.executed = 0;
	live_say(&l, "exec");
	ck_assert_int_eq(live_answer(&l, "ready"), l.pid);
	ck_assert_int_eq(l.executed, 0);
	ck_assert_uint_eq(l.execs, 2);
}
