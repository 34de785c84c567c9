#include "lib/aggregate/period.h"

void period_init(struct period *s, uint64_t chunk_ns)
{
	*s = (struct period){.chunk_ns = chunk_ns};
}

static uint64_t after(uint64_t time_ns, uint64_t start_ns)
{
	return time_ns > start_ns ? time_ns - start_ns : 0;
}

void period_note(struct period *s, uint64_t time_ns)
{
	if (!s->started) {
		s->started = true;
		s->start_ns = s->newest_ns = s->settled_ns = time_ns;
	}
	/* A second gap in the same chunk extends the first one. */
	if (after(time_ns, s->newest_ns) > PERIOD_GAP_NS) {
		if (s->gap_to_ns == 0)
			s->gap_from_ns = s->newest_ns;
		s->gap_to_ns = time_ns;
	}
	s->newest_ns = max_u64(s->newest_ns, time_ns);
}

void period_tick(struct period *s, uint64_t time_ns, uint64_t settled_ns, uint64_t elapsed_ticks)
{
	uint64_t last_ns = s->n_ticks == 0 ? 0 : s->ticks[(s->n_ticks - 1) % PERIOD_TICKS];

	period_note(s, time_ns);
	s->settled_ns = max_u64(s->settled_ns, settled_ns);
	if (s->n_ticks > 0 && time_ns <= last_ns)
		return;
	if (s->n_ticks == 0 || time_ns - last_ns > PERIOD_GAP_NS)
		elapsed_ticks = 1;
	elapsed_ticks = min_u64(max_u64(elapsed_ticks, 1), PERIOD_TICKS);
	/* The missing ticks are counted back from this one, as lib/capture counts them. */
	for (uint64_t back = elapsed_ticks; back-- > 0;)
		s->ticks[s->n_ticks++ % PERIOD_TICKS] =
			time_ns - (time_ns - last_ns) / elapsed_ticks * back;
}

uint64_t period_tick_before(const struct period *s, uint64_t time_ns)
{
	uint64_t known = min_u64(s->n_ticks, PERIOD_TICKS);

	for (uint64_t i = 1; i <= known; i++) {
		uint64_t tick = s->ticks[(s->n_ticks - i) % PERIOD_TICKS];

		if (tick < time_ns)
			return tick;
	}
	return 0;
}

uint64_t period_tick_after(const struct period *s, uint64_t after_ns, uint64_t before_ns)
{
	uint64_t known = min_u64(s->n_ticks, PERIOD_TICKS), first_ns = 0;

	for (uint64_t i = 1; i <= known; i++) {
		uint64_t tick = s->ticks[(s->n_ticks - i) % PERIOD_TICKS];

		if (tick <= after_ns)
			break;
		if (tick < before_ns)
			first_ns = tick;
	}
	return first_ns;
}

uint64_t period_between(const struct period *s, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t lost = after(min_u64(to_ns, s->gap_to_ns), max_u64(from_ns, s->gap_from_ns));

	return after(to_ns, from_ns) - lost;
}

uint64_t period_closable(const struct period *s)
{
	return max_u64(s->settled_ns, after(s->newest_ns, PERIOD_LAG_NS));
}

bool period_due(const struct period *s)
{
	uint64_t closable = period_closable(s);

	return after(closable, s->start_ns) >= s->chunk_ns ||
	       (s->gap_to_ns != 0 && closable >= s->gap_to_ns);
}

void period_end(const struct period *s, uint64_t end_ns, uint64_t *ret_end_ns,
		uint64_t *ret_next_ns)
{
	uint64_t end = max_u64(end_ns, after(s->newest_ns, PERIOD_LAG_NS));
	uint64_t next = end = max_u64(end, s->start_ns);

	if (s->gap_to_ns != 0 && end > s->gap_from_ns) {
		end = s->gap_from_ns;
		next = s->gap_to_ns;
	}
	if (end - s->start_ns > s->chunk_ns + PERIOD_LAG_NS)
		next = end = s->start_ns + s->chunk_ns;
	*ret_end_ns = end;
	*ret_next_ns = next;
}

void period_restart(struct period *s, uint64_t start_ns)
{
	s->start_ns = start_ns;
	s->newest_ns = max_u64(s->newest_ns, start_ns);
	if (start_ns >= s->gap_to_ns)
		s->gap_from_ns = s->gap_to_ns = 0;
}
