#include "daemon/broker/state/state.h"

void state_advance(struct state *s, enum phase phase)
{
	if (s->phase < phase)
		s->phase = phase;
}

uint64_t state_now_ns(const struct state *s)
{
	return clock_mono_ns() - s->suspended_ns;
}
