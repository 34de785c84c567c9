#include "daemon/broker/pause.h"

#include <signal.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/children/watch.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/broker/turn.h"
#include "daemon/common/log.h"
#include "daemon/msg/msg_capture.h"
#include "lib/base/clock.h"

#define POLL_MS 100

/*
 * Tells capture to end, and returns when it has ended. Capture has a timeout of its own, and
 * interrupts the resumed calls before (capture_settle()). Killing it earlier would leave a call
 * with the result of its last part only.
 */
static void end_capture(struct broker *b)
{
	struct patience patience;

	if (b->parts.state.phase < PHASE_DELIVERING)
		child_send_id(&b->parts.children.capture, MSG_CAPTURE_STOP, CAPTURE_KEEP_SESSIONS);
	patience_start(&patience, clock_mono_ns());
	while (b->parts.children.capture.pid != 0) {
		const uint64_t now = clock_mono_ns();

		if (now >= patience_end_ns(&patience, now, watch_capture_works(&b->parts.children)))
			child_fail(&b->parts.children.capture,
				   "does not detach from the processes");
		turn_run_once(b, POLL_MS);
	}
}

/*
 * SIGTSTP is blocked, so it stays pending until it is unblocked; a SIGCONT before that removes
 * it. In an orphaned process group, such as a service's, the kernel drops it, since no process
 * would send SIGCONT.
 */
static void stop_self(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	(void)raise(SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
}

void pause_broker(struct broker *b)
{
	uint64_t since = clock_mono_ns(), now;

	b->parts.state.is_paused = true;
	end_capture(b);
	/* Capture took samples until its last heartbeat. */
	since = max_u64(since, watch_beat_ns(&b->parts.children));
	if (b->parts.state.pause_requested) {
		log_debug("SIGTSTP: detaching from all processes until SIGCONT");
		stop_self();
	}
	now = clock_mono_ns();
	b->parts.state.suspended_ns += now - since;
	targets_pause_ended(&b->parts.targets, now);
	b->parts.children.capture.failures = 0;
	b->parts.children.capture.restart_ns = now;
	b->parts.state.pause_requested = false;
	b->parts.state.is_paused = false;
}
