#include "daemon/capture/slots.h"

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
	case CAPTURE_FOREIGN:
		slot->foreign = true;
		break;
	case CAPTURE_OTHER_TRACER:
		slot->other_tracer = true;
		break;
	}
}

void slots_report(struct slots *s,
		  void (*report)(uint32_t target, enum target_state state, int error))
{
	if (!s->noted)
		return;
	s->noted = false;
	for (size_t i = 0; i < HEARTBEAT_SLOTS; i++) {
		struct slot *slot = &s->list[i];

		if (slot->exec)
			report(slot->target, TARGET_EXEC, 0);
		slot->exec = false;
		if (slot->foreign)
			report(slot->target, TARGET_REFUSED, ENOEXEC);
		else if (slot->other_tracer)
			report(slot->target, TARGET_REFUSED, EBUSY);
		else if (slot->gone)
			report(slot->target, TARGET_GONE, 0);
		if (slot->foreign || slot->other_tracer || slot->gone)
			*slot = (struct slot){0};
	}
}
