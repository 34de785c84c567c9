/*
 * Capture writes its heartbeat into a shared page (daemon/msg/msg_capture.h), with the target
 * whose memory it is about to touch.
 */
#include "daemon/broker/children/watch.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"

/*
 * A heartbeat counts as old after this many checks, at least this far apart. Together they take
 * less than the second that a beat may be old, so that they delay nothing.
 */
#define CHECK_NS	 (50 * NS_PER_MS)
#define STALE_CHECKS_MIN 8

/*
 * If the beat is old but capture is not seen to wait for a target's memory, it has this long: it
 * may be waiting for a processor, or for one of its own pages from a slow disk, which is no
 * target's fault.
 */
#define WRONG_NS (10 * NS_PER_SEC)

static uint64_t read_beat(const struct children *c)
{
	return __atomic_load_n(&c->heartbeat->beat.time_ns, __ATOMIC_RELAXED);
}

uint64_t watch_beat_ns(const struct children *c)
{
	return min_u64(read_beat(c), clock_mono_ns());
}

/*
 * Returns true if the time of the beat is in the future, by HEARTBEAT_DEAD_MS or more. An honest
 * capture never writes such a time. It must be refused, because such a beat would not become old. A
 * beat that capture wrote just after the caller read now is later than now by much less.
 */
static bool is_beat_of_future(uint64_t beat, uint64_t now)
{
	return beat > now && beat - now >= HEARTBEAT_DEAD_MS * NS_PER_MS;
}

/*
 * Returns true if the beat is old and the broker has seen it grow old in STALE_CHECKS_MIN checks. A
 * machine that stood still, or that gave the broker no processor, did the same to capture.
 */
static bool heartbeat_is_old(struct children *c, uint64_t beat, uint64_t now)
{
	struct watch *w = &c->watch;

	beat = max_u64(min_u64(beat, now), c->capture.started_ns);
	if (beat != w->beat_ns) {
		w->beat_ns = beat;
		w->stale_checks = 0;
		w->checked_ns = now;
	}
	if (now - w->checked_ns >= CHECK_NS) {
		w->stale_checks++;
		w->checked_ns = now;
	}
	return now > beat && now - beat >= HEARTBEAT_DEAD_MS * NS_PER_MS &&
	       w->stale_checks >= STALE_CHECKS_MIN;
}

bool watch_capture_works(const struct children *c)
{
	return c->capture.pid != 0 &&
	       ((!c->capture_done && c->watch.stale_checks < STALE_CHECKS_MIN) ||
		threads_any_runnable(c->capture.pid));
}

bool watch_capture_hangs(struct children *c, uint32_t *ret_target)
{
	const uint64_t now = clock_mono_ns();
	uint64_t beat;
	bool stopped;

	if (c->capture.pid == 0 || c->capture_done || c->capture.state >= CHILD_KILLED)
		return false;
	beat = read_beat(c);
	if (is_beat_of_future(beat, now)) {
		child_fail(&c->capture, "shows a heartbeat that is in the future");
		return false;
	}
	if (!heartbeat_is_old(c, beat, now))
		return false;
	stopped = threads_any_stopped(c->capture.pid);
	if (!stopped && !threads_any_reading_memory(c->capture.pid) &&
	    now - c->watch.beat_ns < WRONG_NS)
		return false;
	/* Stopped by a signal or a debugger, not by a target. */
	*ret_target =
		stopped ? 0
			: (uint32_t)__atomic_load_n(&c->heartbeat->beat.touching, __ATOMIC_RELAXED);
	return true;
}

void watch_kill_capture(struct children *c)
{
	child_fail(&c->capture, "shows no heartbeat");
	c->capture.state = CHILD_HUNG;
}

void idle_timeout_start(struct idle_timeout *p, uint64_t now_ns)
{
	*p = (struct idle_timeout){.began_ns = now_ns, .progress_ns = now_ns};
}

uint64_t idle_timeout_end_ns(struct idle_timeout *p, uint64_t now_ns, bool busy)
{
	if (busy)
		p->progress_ns = now_ns;
	return min_u64(p->progress_ns + IDLE_TIMEOUT_NS, p->began_ns + IDLE_TIMEOUT_MAX_NS);
}
