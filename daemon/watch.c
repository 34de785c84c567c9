/*
 * Is capture alive? It shows its heartbeat in a page (daemon/heartbeat.h), and
 * what it is about to touch, so that who makes it hang is left out.
 */
#include <sys/wait.h>

#include "daemon/broker.h"
#include "daemon/process.h"
#include "lib/base/clock.h"

/*
 * An old heartbeat is believed after so many looks with this much between them
 * at least: together less than the second that a beat may be old, so that they
 * cost no time.
 */
#define LOOK_NS	  (50 * NS_PER_MS)
#define LOOKS_MIN 8

/* A capture that has no beat, and does not sleep, has gone wrong after this. */
#define BUSY_NS (10 * NS_PER_SEC)

static bool is_stopped(int32_t pid)
{
	siginfo_t info = {0};

	/* waitid leaves the state to be seen again; WSTOPPED needs no ptrace.
	 */
	return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) ==
		       0 &&
	       info.si_pid == pid;
}

/*
 * Is the beat old, and were we there to see it grow old? Where the machine
 * stood still, or kept us from a processor, it did so to capture: nothing is
 * known before we have looked a number of times. The same if capture has
 * something to do: who hangs in a read sleeps.
 */
static bool heartbeat_is_lost(struct broker *b, uint64_t now)
{
	uint64_t beat = max_u64(
		__atomic_load_n(&b->heartbeat->beat.time_ns, __ATOMIC_RELAXED),
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
	if (now <= beat || now - beat < HEARTBEAT_DEAD_MS * NS_PER_MS ||
	    b->beat_looks < LOOKS_MIN)
		return false;
	return now - beat >= BUSY_NS || !process_is_running(b->capture.pid);
}

void watch_heartbeat(struct broker *b)
{
	uint64_t now = clock_mono_ns();
	uint32_t touching;

	if (b->capture.pid == 0 || b->capture_done ||
	    b->capture.killed_ns != 0 || !heartbeat_is_lost(b, now))
		return;
	touching = (uint32_t)__atomic_load_n(&b->heartbeat->beat.touching,
					     __ATOMIC_RELAXED);
	/* Stopped by somebody's SIGSTOP: no target's fault. */
	if (is_stopped(b->capture.pid))
		touching = 0;
	if (touching != 0)
		targets_capture_died(b, touching);
	child_fail(&b->capture, "shows no heartbeat");
	b->capture.is_silent = true;
}
