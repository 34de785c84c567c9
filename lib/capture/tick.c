#include "lib/capture/target.h"

#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

#include "lib/base/small_file.h"
#include "lib/capture/status.h"

/*
 * An interrupted thread that neither stops nor blocks for this long is told as
 * missed. A runnable thread of 64 on 2 processors waits 130 ms for its turn.
 */
#define PENDING_MAX_NS (1 * NS_PER_SEC)

/*
 * Tens of thousands of threads take longer than the heartbeat may. So many
 * take 10 ms, at their first tick.
 */
#define BEAT_THREADS 256

/* Nearly always there is a sign; if not, the leader is looked at this often. */
#define DOUBT_TICKS 512

/*
 * Threads that were there before us are not all sampled at the first tick, but
 * so many in so long, a tick of 101 Hz: a first sample is a copy of more than
 * is of use, 30 KiB in 35 us as a rule, and readers give room back between
 * ticks only. Nothing is expected of a thread before its turn. It comes when
 * half of the ring is free; but a reader that does not get there in time is
 * none to wait for, and from then on what is lost is counted.
 */
#define FIRSTS_MAX     64
#define FIRSTS_NS      (9 * NS_PER_MS)
#define FIRSTS_WAIT_NS (2 * NS_PER_SEC)

/* Ticks between two comparisons of the number of threads. */
#define SCAN_TICKS 16

/* And, where more than a few are refused, until those are tried again. */
#define REFUSED_FEW   256
#define REFUSED_TICKS 128

/*
 * Looking at more threads than this takes is left for the next tick: where tens
 * of thousands are new, the others would have no ticks.
 */
#define LOOK_NS (20 * NS_PER_MS)

/*
 * After so many ticks a thread that has not stopped is looked at, then after
 * twice as many, and so on: most stop within the first.
 */
#define PENDING_LOOK_TICKS 8

static bool same_place(const struct activity_place *a,
		       const struct activity_place *b)
{
	/* Not the call: after a stop, restart_syscall stands for another. */
	return a->sp == b->sp && a->pc == b->pc;
}

/*
 * Takes a sample of a blocked thread without stopping it. Returns 0, -ENOBUFS,
 * or -EAGAIN if it ran in between. mark: from before it was found blocked;
 * NULL where the kernel does not account: then it has to be in the same place
 * before and after, and is sampled anew at each tick.
 */
static int sample_blocked(struct thread *th, uint64_t tick, uint64_t time_ns,
			  const struct activity_place *place,
			  const struct activity_mark *mark)
{
	uint64_t regs[ARCH_REGS] = {0};
	uint64_t known = UINT64_C(1) << ARCH_SP | UINT64_C(1) << ARCH_PC;
	struct record_sample *record;
	struct activity_place place_after;
	struct activity_mark after;
	uint32_t flags = 0;
	bool unchanged;
	size_t size;
	int r;

	if (th->place_known && same_place(&th->place, place)) {
		for (unsigned int i = 0; i < ARCH_REGS; i++)
			if (ARCH_CALLEE_SAVED & (1u << i))
				regs[i] = th->regs[i];
		known |= ARCH_CALLEE_SAVED;
		flags |= SAMPLE_REMEMBERED;
	}
	regs[ARCH_SP] = place->sp;
	regs[ARCH_PC] = place->pc;
	r = thread_copy(th, tick, time_ns, regs, known, flags, &record, &size);
	if (r < 0)
		return r;
	if (mark != NULL)
		unchanged = activity_mark(&th->activity, &after) &&
			    activity_same(&after, mark);
	else
		unchanged = activity_look(&th->activity, &place_after) ==
				    ACTIVITY_BLOCKED &&
			    same_place(&place_after, place);
	if (!unchanged) {
		thread_drop(th);
		return -EAGAIN;
	}
	thread_commit(th, size);
	if (mark != NULL) {
		thread_sleep(th, mark);
		th->asleep_at = *place;
		th->asleep_since_ns = th->target->capture->options.now_ns();
	}
	return 0;
}

/* The leader stays a zombie until the last thread is gone (proc(5), stat). */
static bool leader_is_dead(const struct thread *th)
{
	char text[512];
	const char *state;

	if (th->tid != (uint32_t)th->target->pid)
		return false;
	if (small_file_read(th->target->proc_fd, "stat", text, sizeof(text)) <
	    0)
		return true;
	/* The name before it may hold anything, a parenthesis too. */
	state = strrchr(text, ')');
	return state != NULL && state[1] == ' ' &&
	       (state[2] == 'Z' || state[2] == 'X');
}

/* It is expected no more; the wait status comes with its last thread's. */
static void leader_died(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	th->dead = true;
	if (th->announced)
		(void)target_tell(th->target, RECORD_EXIT, th->tid, tick,
				  time_ns);
}

/*
 * A core that goes into a pipe, as to systemd-coredump(8), ends where an
 * interrupt meets who writes it: pipe_write() returns, and do_coredump() takes
 * that for the end (fs/coredump.c). An interrupt from before is forgotten when
 * the core begins (zap_process()). Its signal came past us, unless it is that
 * of SECCOMP_RET_KILL_PROCESS, which no tracer sees.
 */
static bool dumps_core(const struct thread *th)
{
	return th->may_dump && status_dumps_core(th->tid);
}

static void interrupt(struct thread *th, uint64_t tick, uint64_t time_ns,
		      const struct activity_place *blocked_at)
{
	struct capture_counters *counters = th->target->counters;

	if (dumps_core(th)) {
		counters->missed[MISSED_EXITED]++;
		return;
	}
	if (!th->look_known)
		th->look = (struct activity_mark){0};
	th->was_blocked = blocked_at != NULL;
	if (blocked_at != NULL)
		th->blocked_at = *blocked_at;
	th->due_ns = th->target->capture->due_ns;
	th->interrupt_ns = th->target->capture->options.now_ns();

	if (ptrace(PTRACE_INTERRUPT, th->tid, NULL, NULL) < 0) {
		/* It is dying; wait will say so. Or it is another's by now. */
		th->target->doubt |= th->tid == (uint32_t)th->target->pid;
		counters->missed[MISSED_EXITED]++;
		return;
	}
	thread_set_pending(th, tick, time_ns);
	th->unaccounted = 1;
	th->next_look = PENDING_LOOK_TICKS;
}

/* A thread that was interrupted at an earlier tick. */
static void look_at_pending(struct thread *th, uint64_t ticks, uint64_t tick,
			    uint64_t time_ns)
{
	struct target *t = th->target;
	struct activity_place place;
	struct activity_mark mark;
	enum activity_state state;
	bool marked;

	th->unaccounted += ticks;
	if (th->unaccounted < th->next_look)
		return;
	th->next_look = 2 * th->unaccounted;
	marked = activity_mark(&th->activity, &mark);
	state = activity_look(&th->activity, &place);
	if (state == ACTIVITY_DEAD && leader_is_dead(th)) {
		/* Alive at the interrupt, for all we know, and not since. */
		t->counters->expected -= th->unaccounted - 1;
		t->counters->missed[MISSED_EXITED]++;
		thread_clear_pending(th);
		leader_died(th, tick, time_ns);
		return;
	}
	/*
	 * In uninterruptible sleep it will not stop. It has been in the kernel
	 * since the interrupt, so its stack is that of the interrupt's tick.
	 */
	if (state == ACTIVITY_BLOCKED && thread_is_known(th) &&
	    sample_blocked(th, th->pending_tick, th->pending_ns, &place,
			   marked ? &mark : NULL) == 0) {
		t->counters->captured++;
		t->counters->filled += th->unaccounted - 1;
		thread_clear_pending(th);
		th->stop_expected = true;
		return;
	}
	if (time_ns - th->pending_ns > PENDING_MAX_NS) {
		thread_missed(th, MISSED_NOT_STOPPED, th->unaccounted,
			      th->pending_tick, th->pending_ns);
		thread_clear_pending(th);
		th->stop_expected = true;
	}
}

/*
 * A thread that is awake. ticks: 1, and those that went by while the sampler
 * did not run.
 */
static void look_at(struct thread *th, uint64_t ticks, uint64_t tick,
		    uint64_t time_ns)
{
	struct capture_counters *counters = th->target->counters;
	struct activity_place place;
	enum activity_state state;

	/* A tick later it is past what a stop did to its call. */
	if (!th->listening)
		th->after_stop = false;
	if (th->target->needs_reset || !thread_announce(th, tick, time_ns)) {
		counters->missed[MISSED_RING_FULL] += ticks;
		return;
	}
	counters->missed[MISSED_LATE] += ticks - 1;
	if (!thread_has_room(th)) {
		thread_missed(th, MISSED_RING_FULL, 1, tick, time_ns);
		return;
	}
	state = activity_look(&th->activity, &place);
	if (state != ACTIVITY_RUNNING && leader_is_dead(th)) {
		counters->expected--;
		leader_died(th, tick, time_ns);
		return;
	}
	if (state == ACTIVITY_BLOCKED) {
		switch (sample_blocked(th, tick, time_ns, &place,
				       th->look_known ? &th->look : NULL)) {
		case 0:
			counters->captured++;
			return;
		case -ENOBUFS:
			thread_missed(th, MISSED_RING_FULL, 1, tick, time_ns);
			return;
		default:
			break;
		}
	}
	interrupt(th, tick, time_ns, state == ACTIVITY_BLOCKED ? &place : NULL);
}

/* Threads made with CLONE_UNTRACED are not attached by the kernel. */
static void scan_for_threads(struct target *t, uint64_t tick, uint64_t time_ns)
{
	bool retry = t->n_refused > 0 && tick >= t->refused_tick;
	struct stat st;

	if (t->pass.dir != NULL && time_ns < t->scan_ns) {
		t->scan_tick = tick + 1;
		return;
	}
	/* A link for each thread, and the two of a directory. */
	if (t->held_up_ticks == 0 && !retry &&
	    (fstat(t->task_fd, &st) < 0 || st.st_nlink < 2 ||
	     st.st_nlink - 2 == t->n_threads + t->n_refused))
		return;
	t->refused_tick = tick + (t->n_refused > REFUSED_FEW ? REFUSED_TICKS
							     : SCAN_TICKS);
	(void)!target_scan(t);
}

/* Is the one that is known still the one that is there? */
static void find_leader(struct target *t, uint64_t tick)
{
	t->doubt = false;
	if (!target_lost_leader(t))
		return;
	/* The scan finds the new one, and tells. */
	target_forget_threads(t);
	t->scan_tick = tick;
}

static void tell_anew(struct target *t, uint64_t tick, uint64_t time_ns)
{
	t->needs_reset = false;
	/* Who starts from nothing does not know who is gone. */
	t->n_gone = 0;
	if (!target_tell(t, RECORD_RESET, 0, tick, time_ns))
		return;
	while (t->asleep != NULL)
		thread_wake(t->asleep);
	for (struct thread *th = t->awake; th != NULL; th = th->next) {
		th->announced = false;
		th->unknown = false;
	}
}

/* Those asleep are as they were, and that is all there is to say of them. */
static void count_sleepers(struct target *t, uint64_t ticks)
{
	struct capture_counters *counters = t->counters;
	const uint64_t n = ticks * t->n_asleep;

	counters->expected += n;
	if (t->needs_reset)
		counters->missed[MISSED_RING_FULL] += n;
	else
		counters->repeated += n;
}

/*
 * How many of the ticks after the last one at which it was looked at, up to
 * this one, are its own: those at which the sum of its rate, taken at each,
 * comes past a whole number.
 */
static uint64_t ticks_due(const struct target *t, uint64_t tick)
{
	return tick * t->rate_ticks / t->rate_of -
	       t->last_tick * t->rate_ticks / t->rate_of;
}

/*
 * A process in which nobody has run for so many ticks is looked at at every
 * other one, after twice as many at every third, and so on: whatever happens
 * in between is seen late by less than a hundredth of the time that it slept.
 */
#define REST_TICKS     128
#define REST_TICKS_MAX 8

static void rest(struct target *t, uint64_t tick)
{
	if (t->awake != NULL || t->needs_reset) {
		t->idle_tick = tick;
		return;
	}
	t->next_tick =
		tick + 1 +
		min_u64((tick - t->idle_tick) / REST_TICKS, REST_TICKS_MAX - 1);
}

/* False if a thread that was there before us has to wait for its turn. */
static bool has_its_turn(struct thread *th, uint64_t time_ns)
{
	const struct target *t = th->target;
	const struct ring_writer *ring = &t->sink->ring;
	struct capture *c = t->capture;

	if (!th->first)
		return true;
	if (c->firsts_ns == 0 || time_ns - c->firsts_ns >= FIRSTS_NS) {
		c->firsts_ns = time_ns;
		c->firsts_left = FIRSTS_MAX;
	}
	if (c->firsts_left == 0 || (ring_space(ring) < ring->size / 2 &&
				    time_ns - t->first_ns < FIRSTS_WAIT_NS))
		return false;
	c->firsts_left--;
	th->first = false;
	return true;
}

void target_tick(struct target *t, uint64_t tick, uint64_t time_ns)
{
	struct capture_counters *counters = t->counters;
	/* Ticks may have been left out since, by its rate or its rest. */
	const uint64_t last_tick = t->last_tick;
	struct thread *next;
	uint64_t ticks, since;
	unsigned int n = 0;
	bool late = false;

	if (tick <= last_tick || tick < t->next_tick || t->ended)
		return;
	since = t->capture->options.now_ns();
	ticks = ticks_due(t, tick);
	if (ticks == 0)
		return;
	t->last_tick = tick;
	t->last_ns = time_ns;
	if (t->first_ns == 0)
		t->first_ns = time_ns;
	counters->ticks += ticks;
	t->capture->options.beat->touching = t->id;
	if (!t->needs_reset)
		target_tell_gone(t, tick, time_ns);
	if (t->needs_reset)
		tell_anew(t, tick, time_ns);
	if (t->doubt || tick / DOUBT_TICKS != last_tick / DOUBT_TICKS)
		find_leader(t, tick);
	if (tick >= t->scan_tick) {
		t->scan_tick = tick + SCAN_TICKS;
		scan_for_threads(t, tick, time_ns);
	}
	counters->expected += ticks * t->n_refused;
	counters->missed[MISSED_NOT_ATTACHED] += ticks * t->n_refused;
	target_look(t);
	target_rename(t, tick, time_ns);
	count_sleepers(t, ticks);
	for (struct thread *th = t->awake; th != NULL; th = next) {
		uint64_t due = th->seen ? ticks : 1;

		next = th->next;
		if (++n % BEAT_THREADS == 0) {
			target_beat(t);
			late |= t->capture->options.now_ns() - since > LOOK_NS;
		}
		if (th->dead || !has_its_turn(th, time_ns))
			continue;
		th->seen = true;
		counters->expected += due;
		if (late && !th->pending) {
			thread_missed(th, MISSED_LATE, due, tick, time_ns);
			continue;
		}
		if (th->pending)
			look_at_pending(th, due, tick, time_ns);
		else
			look_at(th, due, tick, time_ns);
	}
	(void)target_tell_tick(t, tick, time_ns);
	counters->threads = t->n_threads;
	rest(t, tick);
	counters->cost_ns += t->capture->options.now_ns() - since;
	t->capture->options.beat->touching = 0;
}
