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

void crash_on_left(struct targets *ts, struct target *t, const struct msg_target_state *m)
{
	const uint64_t now_ns = clock_mono_ns();
	char name[PROCESS_NAME_SIZE];

	if (!is_known(m->signal) || m->tid == 0) {
		child_fail(&ts->children->capture, "reports a crash without a thread or a signal");
		return;
	}
	process_name(t->pid, name);
	log_warning(
		"process %d (%s) has crashed by SIG%s, for which it has a handler: detached, so "
		"that a crash reporter can trace it",
		t->pid, name, signal_name(m->signal));
	targets_left_in_crash(ts, t, now_ns);
	t->crash = (struct target_crash){
		.tid = m->tid,
		.signal = m->signal,
		.began_ns = now_ns,
		.blocks_signal = m->blocks_signal != 0,
		.awaits_exec = m->awaits_exec != 0,
	};
	t->phase = TARGET_WAITING;
	t->crash.wait_ns = CRASH_LOOK_NS;
	t->retry_ns = now_ns + CRASH_LOOK_NS;
	t->instance->crashes.left++;
}

void crash_on_traced(struct target *t, const struct msg_target_state *m)
{
	char name[PROCESS_NAME_SIZE];

	t->instance->crashes.traced++;
	process_name(t->pid, name);
	log_warning(
		"process %d (%s) has crashed by SIG%s, and sentry-profd could not detach: a thread "
		"did not stop, and processes of uid %u crash too often; a crash reporter may fail",
		t->pid, name, is_known(m->signal) ? signal_name(m->signal) : "?", t->owner.uid);
}

/* Returns true if the thread has left the handler or has exited, as far as is known. */
static bool has_left_handler(const struct target *t, uint64_t now_ns)
{
	uint32_t blocked;

	if (!threads_blocked_signals(t->pid, (int32_t)t->crash.tid, &blocked))
		return true;
	if (!t->crash.blocks_signal)
		return now_ns - t->crash.began_ns >= CRASH_UNSEEN_NS;
	return (blocked >> (t->crash.signal - 1) & 1) == 0;
}

/* The process has survived the crash. */
static void note_survival(struct target *t)
{
	struct instance_crashes *c = &t->instance->crashes;
	struct survived_crash *s = &c->survived[t->crash.signal];
	char name[PROCESS_NAME_SIZE];
	const bool again = s->n > 0 && t->crash.began_ns - s->last_ns < CRASH_AGAIN_NS;

	s->n++;
	s->last_ns = t->crash.began_ns;
	if (!again && s->n < CRASH_SURVIVED_MAX)
		return;
	c->ignored |= UINT32_C(1) << (t->crash.signal - 1);
	process_name(t->pid, name);
	log_warning("process %d (%s) goes on after SIG%s: the signal no longer counts as a crash "
		    "until the process executes another program; run sentry-profctl detach before "
		    "a crash reporter has to trace it",
		    t->pid, name, signal_name(t->crash.signal));
}

bool crash_is_over(struct targets *ts, struct target *t, uint64_t now_ns)
{
	if (t->crash.tid == 0 || t->crash.is_over)
		return true;
	if (has_left_handler(t, now_ns) &&
	    threads_find_tracer(t->pid, ts->children->capture.pid) == 0) {
		t->crash.is_over = true;
		note_survival(t);
		return true;
	}
	t->crash.wait_ns = min_u64(2 * t->crash.wait_ns, CRASH_LOOK_MAX_NS);
	t->retry_ns = now_ns + t->crash.wait_ns;
	return false;
}

void crash_attached(struct target *t)
{
	if (t->crash.tid == 0)
		return;
	log_debug("attached to process %d again, which has survived SIG%s", t->pid,
		  signal_name(t->crash.signal));
	t->crash = (struct target_crash){0};
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
	FOR_EACH_TARGET (t, ts)
		if (t->pid == pid && t->crash.tid != 0 && !t->crash.is_over)
			return true;
	return false;
}
