/*
 * Is capture alive? It shows its heartbeat in a page (daemon/msg/heartbeat.h), and
 * what it is about to touch, so that who makes it hang is left out.
 */
#include "daemon/broker/children/watch.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/children/socket.h"
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
static bool heartbeat_is_old(struct broker *b, uint64_t now)
{
	uint64_t beat = max_u64(__atomic_load_n(&b->heartbeat->beat.time_ns, __ATOMIC_RELAXED),
				b->capture.started_ns);

	if (beat != b->last_beat_ns) {
		b->last_beat_ns = beat;
		b->beat_looks = 0;
		b->beat_look_ns = now;
	}
	if (now - b->beat_look_ns >= LOOK_NS) {
		b->beat_looks++;
		b->beat_look_ns = now;
	}
	return now > beat && now - beat >= HEARTBEAT_DEAD_MS * NS_PER_MS &&
	       b->beat_looks >= LOOKS_MIN;
}

bool watch_works(const struct broker *b)
{
	return b->capture.pid != 0 && ((!b->capture_done && b->beat_looks < LOOKS_MIN) ||
				       threads_any_runnable(b->capture.pid));
}

void watch_heartbeat(struct broker *b)
{
	const uint64_t now = clock_mono_ns();
	uint32_t touching;
	bool stopped;

	if (b->capture.pid == 0 || b->capture_done || b->capture.state >= CHILD_KILLED ||
	    !heartbeat_is_old(b, now))
		return;
	stopped = threads_any_stopped(b->capture.pid);
	if (!stopped && !threads_any_reading_memory(b->capture.pid) &&
	    now - b->last_beat_ns < WRONG_NS)
		return;
	touching = (uint32_t)__atomic_load_n(&b->heartbeat->beat.touching, __ATOMIC_RELAXED);
	/* By a signal or a debugger: no target's fault. */
	if (touching != 0 && !stopped)
		targets_capture_died(b, touching);
	child_fail(&b->capture, "shows no heartbeat");
	b->capture.state = CHILD_SILENT;
}
