/*
 * The targets (profiled processes) of capture, each in its slot of the heartbeat page
 * (daemon/msg/msg_capture.h), and the events of targets. lib/capture calls slots_note_event() and
 * slots_note_crash() during a tick or while it handles stops. slots_report() sends the events to
 * the broker afterwards.
 */
#ifndef DAEMON_CAPTURE_SLOTS_H
#define DAEMON_CAPTURE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_capture.h"
#include "lib/capture/options.h"

/* All 0: no targets. */
struct slots {
	struct slot {
		uint32_t target; /* 0: free */
		/*
		 * The noted events. Each comment names the event of lib/capture and, after the
		 * colon, the state that slots_report() reports for the event, with its error.
		 */
		bool gone;	   /* CAPTURE_GONE: TARGET_GONE */
		bool exec;	   /* CAPTURE_EXEC: TARGET_EXEC */
		bool other_rights; /* CAPTURE_OTHER_RIGHTS: TARGET_OTHER_RIGHTS */
		bool foreign;	   /* CAPTURE_FOREIGN: TARGET_REFUSED, ENOEXEC */
		bool other_tracer; /* CAPTURE_OTHER_TRACER: TARGET_REFUSED, EBUSY */
		/*
		 * slots_note_crash(): TARGET_CRASHED if capture has detached from the process
		 * (crash.left), else TARGET_CRASHES_TRACED. crash.tid is 0: no crash.
		 */
		struct capture_crash crash;
	} list[HEARTBEAT_SLOTS];
	bool noted; /* an event is to be reported */
};

/* Returns true if slot is below HEARTBEAT_SLOTS and has no target. */
bool slots_is_free(const struct slots *s, uint32_t slot);
/* Gives the slot, which must be free, to the target. */
void slots_take(struct slots *s, uint32_t slot, uint32_t target);

/* Returns true if there are no targets. */
bool slots_are_free(const struct slots *s);

/*
 * Notes an event for slots_report(). A callback for capture_options.event; ctx is the struct slots.
 * The event of a target without a slot is ignored.
 */
void slots_note_event(void *ctx, uint32_t target, enum capture_event event);

/*
 * Notes a crash for slots_report(). A callback for capture_options.crashed; ctx is the struct
 * slots. The crash of a target without a slot is ignored.
 */
void slots_note_crash(void *ctx, uint32_t target, const struct capture_crash *crash);

/*
 * Calls report at once, without a slot: for a child of a target, if the child had crashed before
 * MSG_TARGET_ADD made it a target (capture_child_has_crashed).
 */
void slots_report_crash(uint32_t target, const struct capture_crash *crash,
			void (*report)(const struct msg_target_state *m));

/*
 * Calls report for each noted event: of a target first exec, then other_rights. If a target has
 * several of foreign, other_tracer, gone and crash, only the first in this order follows. Then
 * frees the slots of targets that lib/capture has removed: after CAPTURE_GONE, CAPTURE_FOREIGN,
 * CAPTURE_OTHER_TRACER, or a crash with left set.
 */
void slots_report(struct slots *s, void (*report)(const struct msg_target_state *m));

#endif
