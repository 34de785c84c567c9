/*
 * The targets of a capture process, each in its slot of the heartbeat page, and
 * what has happened to them: noted in the middle of a tick or of taking stops,
 * told to the broker after it.
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
	bool noted; /* something is to be told */
};

/* False too if there is no such slot. */
bool slots_is_free(const struct slots *s, uint32_t slot);
void slots_take(struct slots *s, uint32_t slot, uint32_t target);

/* No target is left. */
bool slots_are_free(const struct slots *s);

/* For capture_options.event; ctx is the struct slots. */
void slots_note(void *ctx, uint32_t target, enum capture_event event);

/* Tells what was noted, and frees the slots of those that are gone. */
void slots_tell(struct slots *s, void (*tell)(uint32_t target, enum target_state state, int error));

#endif
