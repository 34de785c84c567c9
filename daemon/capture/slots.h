/*
 * The targets of this process, each in its slot of the heartbeat page, and the events that have
 * happened to them: noted during a tick or while stops are handled, reported to the broker after
 * that.
 */
#ifndef DAEMON_CAPTURE_SLOTS_H
#define DAEMON_CAPTURE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/heartbeat.h"
#include "daemon/msg/msg_capture.h"
#include "lib/capture/capture.h"

struct slots {
	struct slot {
		uint32_t target; /* 0: free */
		bool gone;
		bool exec;
		bool foreign;
		bool taken;
	} list[HEARTBEAT_SLOTS];
	bool noted; /* an event is to be reported */
};

/* False also if there is no such slot. */
bool slots_is_free(const struct slots *s, uint32_t slot);
void slots_take(struct slots *s, uint32_t slot, uint32_t target);

/* Returns true if there are no targets. */
bool slots_are_free(const struct slots *s);

/* For capture_options.event; ctx is the struct slots. */
void slots_note_event(void *ctx, uint32_t target, enum capture_event event);

/* Reports what was noted by calls of tell, and frees the slots of targets that are gone. */
void slots_report(struct slots *s,
		  void (*tell)(uint32_t target, enum target_state state, int error));

#endif
