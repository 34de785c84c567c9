#include "daemon/capture/slots.h"

#include <errno.h>

bool slots_is_free(const struct slots *s, uint32_t slot)
{
	return slot < HEARTBEAT_SLOTS && s->list[slot].target == 0;
}

bool slots_are_free(const struct slots *s)
{
	for (size_t i = 0; i < HEARTBEAT_SLOTS; i++)
		if (s->list[i].target != 0)
			return false;
	return true;
}

void slots_take(struct slots *s, uint32_t slot, uint32_t target)
{
	s->list[slot] = (struct slot){.target = target};
}

static struct slot *slot_of(struct slots *s, uint32_t target)
{
	for (size_t i = 0; i < HEARTBEAT_SLOTS; i++)
		if (s->list[i].target == target)
			return &s->list[i];
	return NULL;
}

void slots_note_event(void *ctx, uint32_t target, enum capture_event event)
{
	struct slots *s = ctx;
	struct slot *slot = slot_of(s, target);

	if (slot == NULL)
		return;
	s->noted = true;
	switch (event) {
	case CAPTURE_GONE:
		slot->gone = true;
		break;
	case CAPTURE_EXEC:
		slot->exec = true;
		break;
	case CAPTURE_OTHER_RIGHTS:
		slot->other_rights = true;
		break;
	case CAPTURE_FOREIGN:
		slot->foreign = true;
		break;
	case CAPTURE_OTHER_TRACER:
		slot->other_tracer = true;
		break;
	}
}

void slots_note_crash(void *ctx, uint32_t target, const struct capture_crash *crash)
{
	struct slots *s = ctx;
	struct slot *slot = slot_of(s, target);

	if (slot == NULL)
		return;
	s->noted = true;
	slot->crash = *crash;
}

void slots_report_crash(uint32_t target, const struct capture_crash *crash,
			void (*report)(const struct msg_target_state *m))
{
	const struct msg_target_state m = {
		.h = MSG_HEADER(MSG_TARGET_STATE),
		.target = target,
		.state = crash->left ? TARGET_CRASHED : TARGET_CRASHES_TRACED,
		.tid = crash->tid,
		.signal = crash->signal,
		.blocks_signal = crash->blocks_signal,
		.awaits_exec = crash->awaits_exec,
	};

	report(&m);
}

static void report_slot(const struct slot *slot, void (*report)(const struct msg_target_state *m))
{
	struct msg_target_state m = {.h = MSG_HEADER(MSG_TARGET_STATE), .target = slot->target};

	if (slot->exec) {
		m.state = TARGET_EXEC;
		report(&m);
	}
	if (slot->other_rights) {
		m.state = TARGET_OTHER_RIGHTS;
		report(&m);
	}
	if (slot->foreign) {
		m.state = TARGET_REFUSED;
		m.error = ENOEXEC;
		report(&m);
	} else if (slot->other_tracer) {
		m.state = TARGET_REFUSED;
		m.error = EBUSY;
		report(&m);
	} else if (slot->gone) {
		m.state = TARGET_GONE;
		report(&m);
	} else if (slot->crash.tid != 0) {
		slots_report_crash(slot->target, &slot->crash, report);
	}
}

void slots_report(struct slots *s, void (*report)(const struct msg_target_state *m))
{
	if (!s->noted)
		return;
	s->noted = false;
	for (size_t i = 0; i < HEARTBEAT_SLOTS; i++) {
		struct slot *slot = &s->list[i];
		const bool is_forgotten =
			slot->foreign || slot->other_tracer || slot->gone || slot->crash.left;

		report_slot(slot, report);
		*slot = (struct slot){.target = is_forgotten ? 0 : slot->target};
	}
}
