#include "daemon/broker/targets/run.h"

#include "daemon/broker/children/child.h"
#include "daemon/common/log.h"

/* A shorter sleep of the machine is not visible on the server's time line. */
#define SLEPT_NS NS_PER_SEC

/* More than a leap second. */
#define CLOCK_SET_US ((int64_t)(2 * NS_PER_SEC / NS_PER_US))
/* A clock that is set all the time ends a run at most once a minute. */
#define CLOCK_SET_AGE_NS (60 * NS_PER_SEC)

bool run_is_open(const struct run *run)
{
	return run->phase == RUN_WAITING || run->phase == RUN_PROFILED;
}

/* An unwind process that was asked to open a session will answer. */
bool run_is_over(const struct run *run)
{
	return run->phase == RUN_CLOSED && !run->in_capture && run->session != SESSION_ASKED;
}

/*
 * The time between the readings makes slept_ns at most longer, and in has_machine_slept() the value
 * that it is compared with at most shorter: the error never causes a restart.
 */
void run_set_times(const struct state *state, struct run *run)
{
	const uint64_t mono_ns = state->clocks.mono();

	run->profile.opened_ns = mono_ns;
	run->profile.wall_offset_us = (state->clocks.wall() - mono_ns) / NS_PER_US;
	run->profile.slept_ns = state->clocks.boot() - mono_ns;
}

static bool has_machine_slept(const struct state *state, const struct run *run)
{
	const uint64_t boot_ns = state->clocks.boot();

	return boot_ns > state->clocks.mono() + run->profile.slept_ns + SLEPT_NS;
}

/* The time between the readings makes both differences at most smaller. */
static bool was_clock_set(const struct state *state, const struct run *run)
{
	const uint64_t before_us = state->clocks.mono() / NS_PER_US;
	const uint64_t wall_us = state->clocks.wall() / NS_PER_US;
	const uint64_t after_ns = state->clocks.mono();
	const int64_t forward_us =
		(int64_t)(wall_us - after_ns / NS_PER_US - run->profile.wall_offset_us);
	const int64_t back_us = (int64_t)(run->profile.wall_offset_us - (wall_us - before_us));

	return after_ns - run->profile.opened_ns >= CLOCK_SET_AGE_NS &&
	       (forward_us > CLOCK_SET_US || back_us > CLOCK_SET_US);
}

bool run_clocks_agree(const struct state *state, const struct run *run)
{
	return !has_machine_slept(state, run) && !was_clock_set(state, run);
}

#define FILES_SUSPENDED_NS     (60 * NS_PER_SEC)
#define FILES_SUSPENDED_MAX_NS (60 * FILES_SUSPENDED_NS)

uint64_t run_suspend_files(struct run *run, uint64_t now_ns)
{
	const uint64_t ns =
		backoff_ns(++run->file_suspensions, FILES_SUSPENDED_NS, FILES_SUSPENDED_MAX_NS);

	run->files_suspended_until_ns = now_ns + ns;
	return ns;
}

void run_files_hang(struct run *run, uint64_t now_ns)
{
	const uint64_t ns = run_suspend_files(run, now_ns);

	log_error("opening a file of process %d hangs: its files are not opened for %u min; "
		  "functions of files that were not read before have no names",
		  run->pid, (unsigned int)(ns / NS_PER_SEC / 60));
}

bool run_files_suspended(const struct run *run, uint64_t now_ns)
{
	return now_ns < run->files_suspended_until_ns;
}

void run_closed(struct child *capture, struct run *run)
{
	if (run_is_open(run) && run->in_capture)
		child_send_id(capture, MSG_TARGET_REMOVE, run->id);
	run->attach_due = false;
	run->phase = RUN_CLOSED;
}

void run_begins_to_close(struct run *run, enum run_phase phase)
{
	run->phase = phase;
	if (run->closing_ns == 0)
		run->closing_ns = clock_mono_ns();
}

void run_close(struct run *run)
{
	if (run->phase == RUN_CLOSED)
		return;
	/*
	 * An unwind process that is not ready has no records of the run, and may never
	 * answer.
	 */
	if (run->unwind == NULL || run->unwind->child.fd < 0 ||
	    run->unwind->child.state == CHILD_STARTS) {
		run->phase = RUN_CLOSED;
		return;
	}
	run_begins_to_close(run, RUN_CLOSING);
	run->overdue_checks = 0;
	child_send_id(&run->unwind->child, MSG_SESSION_CLOSE, run->id);
}
