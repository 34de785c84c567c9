#include "daemon/broker/targets/crash.h"

#include <string.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"

/* Capture reports only signals of this range. */
static bool is_known(int32_t signal)
{
	return signal > 0 && signal < CRASH_SIGNALS;
}

static const char *signal_name(int32_t signal)
{
	const char *name = sigabbrev_np(signal);

	return name != NULL ? name : "?";
}

void crash_on_left(struct targets *ts, struct run *run, const struct msg_target_state *m)
{
	const uint64_t now_ns = clock_mono_ns();
	char name[PROCESS_NAME_SIZE];

	if (!is_known(m->signal) || m->tid == 0) {
		child_fail(&ts->children->capture, "reports a crash without a thread or a signal");
		return;
	}
	process_name(run->pid, name);
	log_warning("process %d (%s) has crashed by SIG%s, for which it has a handler: "
		    "sentry-profd has detached, so that a crash reporter can trace it; if the "
		    "process survives, profiling goes on",
		    run->pid, name, signal_name(m->signal));
	totals_left_in_crash(ts, run, now_ns);
	run->crash = (struct run_crash){
		.tid = m->tid,
		.signal = m->signal,
		.began_ns = now_ns,
		.blocks_signal = m->blocks_signal != 0,
		.awaits_exec = m->awaits_exec != 0,
	};
	run->phase = RUN_WAITING;
	run->crash.wait_ns = CRASH_LOOK_NS;
	run->retry_ns = now_ns + CRASH_LOOK_NS;
	run->instance->crashes.left++;
}

void crash_on_traced(struct run *run, const struct msg_target_state *m)
{
	char name[PROCESS_NAME_SIZE];

	run->instance->crashes.traced++;
	process_name(run->pid, name);
	log_warning(
		"process %d (%s) has crashed by SIG%s, and sentry-profd could not detach: a thread "
		"did not stop, and processes of uid %u crash too often; a crash reporter may fail",
		run->pid, name, is_known(m->signal) ? signal_name(m->signal) : "?", run->owner.uid);
}

/* Returns true if the thread has left the handler or has exited, as far as is known. */
static bool has_left_handler(const struct run *run, uint64_t now_ns)
{
	uint32_t blocked;

	if (!threads_blocked_signals(run->pid, (int32_t)run->crash.tid, &blocked))
		return true;
	if (!run->crash.blocks_signal)
		return now_ns - run->crash.began_ns >= CRASH_UNSEEN_NS;
	return (blocked >> (run->crash.signal - 1) & 1) == 0;
}

/* The process has survived the crash. */
static void note_survival(struct run *run)
{
	struct instance_crashes *c = &run->instance->crashes;
	struct survived_crash *s = &c->survived[run->crash.signal];
	char name[PROCESS_NAME_SIZE];
	const bool again = s->n > 0 && run->crash.began_ns - s->last_ns < CRASH_AGAIN_NS;

	s->n++;
	s->last_ns = run->crash.began_ns;
	if (!again && s->n < CRASH_SURVIVED_MAX)
		return;
	c->ignored |= UINT32_C(1) << (run->crash.signal - 1);
	process_name(run->pid, name);
	log_warning("process %d (%s) has survived SIG%s again and again: until it executes another "
		    "program, sentry-profd stays attached at this signal, so that no crash "
		    "reporter can trace it; if one must, run sentry-profctl detach %d",
		    run->pid, name, signal_name(run->crash.signal), run->pid);
}

bool crash_is_over(struct targets *ts, struct run *run, uint64_t now_ns)
{
	if (run->crash.tid == 0 || run->crash.is_over)
		return true;
	if (has_left_handler(run, now_ns) &&
	    threads_find_tracer(run->pid, ts->children->capture.pid) == 0) {
		run->crash.is_over = true;
		note_survival(run);
		return true;
	}
	run->crash.wait_ns = min_u64(2 * run->crash.wait_ns, CRASH_LOOK_MAX_NS);
	run->retry_ns = now_ns + run->crash.wait_ns;
	return false;
}

void crash_attached(struct run *run)
{
	if (run->crash.tid == 0)
		return;
	log_debug("attached to process %d again, which has survived SIG%s", run->pid,
		  signal_name(run->crash.signal));
	run->crash = (struct run_crash){0};
}

void crash_forget(struct instance *i)
{
	i->crashes.ignored = 0;
	memset(i->crashes.survived, 0, sizeof(i->crashes.survived));
}

uint32_t crash_ignored(const struct instance *i)
{
	return i->config.on_crash == ON_CRASH_STAY ? UINT32_MAX : i->crashes.ignored;
}

bool crash_is_reported(struct targets *ts, int32_t pid)
{
	FOR_EACH_RUN (run, ts)
		if (run->pid == pid && run->crash.tid != 0 && !run->crash.is_over &&
		    run->phase != RUN_CLOSED)
			return true;
	return false;
}
