/*
 * Is capture alive? It shows its heartbeat in a page (daemon/msg/heartbeat.h), and
 * which target it is about to touch, so that a target that makes it hang is left out.
 */
#include "daemon/broker/children/watch.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"

/*
 * An old heartbeat is believed after so many looks with this much between them
 * at least: together less than the second that a beat may be old, so that they
 * cost no time.
 */
#define LOOK_NS	  (50 * NS_PER_MS)
#define LOOKS_MIN 8

/*
 * A capture whose beat is old and that is not seen to wait for a target has
 * gone wrong after this: until then it waits for a processor, or for a page of
 * its own from a disk that does not answer, and that is no target's fault.
 */
#define WRONG_NS (10 * NS_PER_SEC)

/*
 * Is the beat old, and were we there to see it grow old? Where the machine
 * stood still, or kept us from a processor, it did so to capture: nothing is
 * known before we have looked a number of times.
 */
static bool heartbeat_is_old(struct children *c, uint64_t now)
{
	uint64_t beat = max_u64(__atomic_load_n(&c->heartbeat->beat.time_ns, __ATOMIC_RELAXED),
				c->capture.started_ns);
	struct watch *w = &c->watch;

	if (beat != w->beat_ns) {
		w->beat_ns = beat;
		w->looks = 0;
		w->look_ns = now;
	}
	if (now - w->look_ns >= LOOK_NS) {
		w->looks++;
		w->look_ns = now;
	}
	return now > beat && now - beat >= HEARTBEAT_DEAD_MS * NS_PER_MS && w->looks >= LOOKS_MIN;
}

bool watch_works(const struct children *c)
{
	return c->capture.pid != 0 && ((!c->capture_done && c->watch.looks < LOOKS_MIN) ||
				       threads_any_runnable(c->capture.pid));
}

bool watch_is_hung(struct children *c, uint32_t *ret_target)
{
	const uint64_t now = clock_mono_ns();
	bool stopped;

	if (c->capture.pid == 0 || c->capture_done || c->capture.state >= CHILD_KILLED ||
	    !heartbeat_is_old(c, now))
		return false;
	stopped = threads_any_stopped(c->capture.pid);
	if (!stopped && !threads_any_reading_memory(c->capture.pid) &&
	    now - c->watch.beat_ns < WRONG_NS)
		return false;
	/* By a signal or a debugger: no target's fault. */
	*ret_target =
		stopped ? 0
			: (uint32_t)__atomic_load_n(&c->heartbeat->beat.touching, __ATOMIC_RELAXED);
	return true;
}

void watch_kill(struct children *c)
{
	child_fail(&c->capture, "shows no heartbeat");
	c->capture.state = CHILD_SILENT;
}
