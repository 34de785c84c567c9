/* When capture attaches again after a crash, and which signals no longer count as crashes. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/crash.h"
#include "daemon/broker/targets/totals.h"
#include "lib/base/clock.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct heartbeat heartbeat;
static struct instance instance;
static struct unwind unwind_process;
static struct run *run;
static int broker_end;

/* Starts a process that blocks SIGSEGV or not, as in a handler, and sleeps. */
static void start(bool blocks)
{
	sigset_t set, before;

	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	OK(sigprocmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, &before));
	instance.pid = fork();
	if (instance.pid == 0)
		for (;;)
			pause();
	OK(sigprocmask(SIG_SETMASK, &before, NULL));
	ck_assert_int_gt(instance.pid, 0);
	instance.pidfd = (int)syscall(SYS_pidfd_open, instance.pid, 0);
	ck_assert_int_ge(instance.pidfd, 0);
}

static void begin(bool blocks)
{
	build_broker(&b);
	b.modules.children.heartbeat = &heartbeat;
	instance = (struct instance){.targets = &b.modules.targets};
	start(blocks);
	broker_end = build_unwind(&b, &unwind_process);
	run = build_run(&b, &instance, &unwind_process);
	run->in_capture = run->was_attached = true;
	run->rate_hz = run->full_hz = 100;
	heartbeat.slots[run->slot].threads = 3;
}

static void crash(bool blocks_signal)
{
	const struct msg_target_state m = {
		.target = run->id,
		.state = TARGET_CRASHED,
		.tid = (uint32_t)instance.pid,
		.signal = SIGSEGV,
		.blocks_signal = blocks_signal,
	};

	log_capture_begin();
	attach_on_state(&b.modules.targets, &m);
	ck_assert_uint_eq(log_capture_end("has crashed by SIGSEGV"), 1);
	ck_assert(run->phase == RUN_WAITING);
	ck_assert(!run->in_capture);
	ck_assert(!run->attach_due);
}

static void attach(void)
{
	const struct msg_target_state m = {.target = run->id, .state = TARGET_ATTACHED};

	run->in_capture = true;
	attach_on_state(&b.modules.targets, &m);
	ck_assert(run->phase == RUN_PROFILED);
	ck_assert_uint_eq(run->crash.tid, 0);
	ck_assert_uint_eq(run->retry_ns, 0);
}

static bool is_over_after(uint64_t ns)
{
	return crash_is_over(&b.modules.targets, run, run->crash.began_ns + ns);
}

static void tear_down(void)
{
	(void)kill(instance.pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	(void)close(instance.pidfd);
	(void)close(broker_end);
}

FIXTURE(NULL, tear_down)

TEST(capture_attaches_again_when_the_handler_was_left)
{
	begin(false);
	crash(true);
	ck_assert(is_over_after(CRASH_LOOK_NS));
	ck_assert_uint_eq(crash_ignored(&instance), 0);
	attach();
}

/* The process is looked at after 2, 4, 8 ... s. */
TEST(a_process_in_its_handler_is_looked_at_ever_more_rarely)
{
	uint64_t at_ns = 0;

	begin(true);
	crash(true);
	for (uint64_t wait_ns = CRASH_LOOK_NS; wait_ns < CRASH_LOOK_MAX_NS; wait_ns *= 2) {
		ck_assert_uint_eq(run->crash.wait_ns, wait_ns);
		at_ns += wait_ns;
		ck_assert(!is_over_after(at_ns));
		ck_assert_uint_eq(run->retry_ns, run->crash.began_ns + at_ns + 2 * wait_ns);
	}
	ck_assert(!is_over_after(3600 * NS_PER_SEC));
	ck_assert_uint_eq(run->crash.wait_ns, CRASH_LOOK_MAX_NS);
}

TEST(a_handler_that_does_not_block_its_signal_has_its_time)
{
	begin(false);
	crash(false);
	ck_assert(!is_over_after(CRASH_UNSEEN_NS - 1));
	ck_assert(is_over_after(CRASH_UNSEEN_NS));
}

TEST(capture_does_not_attach_while_a_reporter_traces_the_process)
{
	pid_t reporter;
	char byte;
	int ends[2];

	begin(false);
	crash(true);
	OK(pipe(ends));
	reporter = fork();
	if (reporter == 0) {
		if (ptrace(PTRACE_SEIZE, instance.pid, NULL, NULL) == 0)
			(void)!write(ends[1], "x", 1);
		for (;;)
			pause();
	}
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	ck_assert(!is_over_after(CRASH_UNSEEN_NS));
	OK(kill(reporter, SIGKILL));
	ck_assert_int_eq(waitpid(reporter, NULL, 0), reporter);
	ck_assert(is_over_after(CRASH_UNSEEN_NS));
}

/* A crash at began_ns, by a handler that has returned. */
static void survive(uint64_t began_ns)
{
	crash(true);
	run->crash.began_ns = began_ns;
	ck_assert(is_over_after(CRASH_LOOK_NS));
	attach();
}

TEST(a_signal_no_longer_counts_after_two_crashes_in_a_minute)
{
	begin(false);
	survive(NS_PER_SEC);
	survive(NS_PER_SEC + CRASH_AGAIN_NS);
	ck_assert_uint_eq(crash_ignored(&instance), 0);
	survive(2 * CRASH_AGAIN_NS);
	ck_assert_uint_eq(crash_ignored(&instance), 1u << (SIGSEGV - 1));
}

TEST(a_signal_no_longer_counts_after_five_crashes)
{
	begin(false);
	for (uint64_t i = 0; i < CRASH_SURVIVED_MAX; i++) {
		ck_assert_uint_eq(crash_ignored(&instance), 0);
		survive(NS_PER_SEC + i * CRASH_AGAIN_NS);
	}
	ck_assert_uint_eq(crash_ignored(&instance), 1u << (SIGSEGV - 1));
}

TEST(an_exec_makes_all_signals_count_again)
{
	const struct msg_target_state m = {.state = TARGET_EXEC};
	struct msg_target_state exec = m;

	begin(false);
	survive(NS_PER_SEC);
	survive(2 * NS_PER_SEC);
	ck_assert_uint_ne(crash_ignored(&instance), 0);
	exec.target = run->id;
	attach_on_state(&b.modules.targets, &exec);
	ck_assert_uint_eq(crash_ignored(&instance), 0);
	survive(3 * NS_PER_SEC);
	ck_assert_uint_eq(crash_ignored(&instance), 0);
}

TEST(no_signal_counts_if_the_configuration_says_so)
{
	begin(false);
	instance.config.on_crash = ON_CRASH_STAY;
	ck_assert_uint_eq(crash_ignored(&instance), UINT32_MAX);
}

/* The three threads have missed a hundred ticks a second since the crash. */
TEST(samples_are_missed_because_of_the_crash)
{
	struct run_totals totals;

	begin(false);
	crash(true);
	run->no_capture_since_ns -= NS_PER_SEC;
	ck_assert(is_over_after(CRASH_LOOK_NS));
	attach();
	totals_of_run(&b.modules.targets, run, &totals);
	ck_assert_uint_ge(totals.capture.missed[MISSED_CRASH], 100 * 3);
	ck_assert_uint_eq(totals.capture.missed[MISSED_CRASH], totals.capture.expected);
	ck_assert_uint_eq(totals.missed_no_capture, 0);
}

/* A new capture process starts with all targets that are open. */
TEST(a_new_capture_does_not_attach_in_a_crash)
{
	begin(false);
	crash(true);
	totals_capture_died(&b.modules.targets, 0);
	attach_start(&b.modules.targets, run);
	ck_assert(!run->attach_due);
	ck_assert(is_over_after(CRASH_LOOK_NS));
	attach_start(&b.modules.targets, run);
	ck_assert(run->attach_due);
}

TEST(the_run_ends_with_a_process_that_does_not_survive)
{
	struct run_totals totals;

	begin(false);
	crash(true);
	run->no_capture_since_ns -= NS_PER_SEC;
	instance.life = INSTANCE_ENDED;
	attach_check(&b.modules.targets);
	ck_assert(run->phase == RUN_CLOSING);
	totals_of_run(&b.modules.targets, run, &totals);
	ck_assert_uint_ge(totals.capture.missed[MISSED_CRASH], 100 * 3);
}

TEST(a_process_that_a_crashed_one_starts_is_left_alone)
{
	begin(false);
	ck_assert(!crash_is_reported(&b.modules.targets, instance.pid));
	crash(true);
	ck_assert(crash_is_reported(&b.modules.targets, instance.pid));
	ck_assert(!crash_is_reported(&b.modules.targets, instance.pid + 1));
	ck_assert(is_over_after(CRASH_LOOK_NS));
	ck_assert(!crash_is_reported(&b.modules.targets, instance.pid));
}

/* Capture may be another program by now (docs/SECURITY.md). */
TEST(a_crash_without_a_signal_breaks_a_rule)
{
	struct msg_target_state m = {.state = TARGET_CRASHED, .tid = 1, .signal = 64};

	begin(false);
	m.target = run->id;
	attach_on_state(&b.modules.targets, &m);
	ck_assert_uint_eq(run->crash.tid, 0);
}
