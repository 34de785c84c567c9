#include "lib/aggregate/window.h"

void window_init(struct window *p, uint64_t chunk_ns)
{
	*p = (struct window){.chunk_ns = chunk_ns};
}

/* Returns time_ns - start_ns, or 0 if time_ns is earlier. */
static uint64_t since(uint64_t time_ns, uint64_t start_ns)
{
	return time_ns > start_ns ? time_ns - start_ns : 0;
}

void window_note(struct window *p, uint64_t time_ns)
{
	if (!p->started) {
		p->started = true;
		p->start_ns = p->newest_ns = p->settled_ns = time_ns;
	}
	/* A second gap in the same chunk extends the first one. */
	if (since(time_ns, p->newest_ns) > WINDOW_GAP_NS) {
		if (p->gap_to_ns == 0)
			p->gap_from_ns = p->newest_ns;
		p->gap_to_ns = time_ns;
	}
	p->newest_ns = max_u64(p->newest_ns, time_ns);
}

void window_tick(struct window *p, uint64_t time_ns, uint64_t settled_ns, uint64_t elapsed_ticks)
{
	uint64_t last_ns = p->n_ticks == 0 ? 0 : p->ticks[(p->n_ticks - 1) % WINDOW_TICKS];

	window_note(p, time_ns);
	p->settled_ns = max_u64(p->settled_ns, settled_ns);
	if (p->n_ticks > 0 && time_ns <= last_ns)
		return;
	if (p->n_ticks == 0 || time_ns - last_ns > WINDOW_GAP_NS)
		elapsed_ticks = 1;
	elapsed_ticks = min_u64(max_u64(elapsed_ticks, 1), WINDOW_TICKS);
	/* The missing ticks are counted back from this one, as lib/capture counts them. */
	for (uint64_t back = elapsed_ticks; back-- > 0;)
		p->ticks[p->n_ticks++ % WINDOW_TICKS] =
			time_ns - (time_ns - last_ns) / elapsed_ticks * back;
}

uint64_t window_tick_before(const struct window *p, uint64_t time_ns)
{
	uint64_t known = min_u64(p->n_ticks, WINDOW_TICKS);

	for (uint64_t i = 1; i <= known; i++) {
		uint64_t tick = p->ticks[(p->n_ticks - i) % WINDOW_TICKS];

		if (tick < time_ns)
			return tick;
	}
	return 0;
}

uint64_t window_tick_after(const struct window *p, uint64_t after_ns, uint64_t before_ns)
{
	uint64_t known = min_u64(p->n_ticks, WINDOW_TICKS), first_ns = 0;

	for (uint64_t i = 1; i <= known; i++) {
		uint64_t tick = p->ticks[(p->n_ticks - i) % WINDOW_TICKS];

		if (tick <= after_ns)
			break;
		if (tick < before_ns)
			first_ns = tick;
	}
	return first_ns;
}

uint64_t window_between(const struct window *p, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t lost = since(min_u64(to_ns, p->gap_to_ns), max_u64(from_ns, p->gap_from_ns));

	return since(to_ns, from_ns) - lost;
}

uint64_t window_closable(const struct window *p)
{
	return max_u64(p->settled_ns, since(p->newest_ns, WINDOW_LAG_NS));
}

bool window_due(const struct window *p)
{
	uint64_t closable = window_closable(p);

	return since(closable, p->start_ns) >= p->chunk_ns ||
	       (p->gap_to_ns != 0 && closable >= p->gap_to_ns);
}

void window_end(const struct window *p, uint64_t end_ns, uint64_t *ret_end_ns,
		uint64_t *ret_next_ns)
{
	uint64_t end = max_u64(end_ns, since(p->newest_ns, WINDOW_LAG_NS));
	uint64_t next = end = max_u64(end, p->start_ns);

	if (p->gap_to_ns != 0 && end > p->gap_from_ns) {
		end = p->gap_from_ns;
		next = p->gap_to_ns;
	}
	if (end - p->start_ns > p->chunk_ns + WINDOW_LAG_NS)
		next = end = p->start_ns + p->chunk_ns;
	*ret_end_ns = end;
	*ret_next_ns = next;
}

void window_restart(struct window *p, uint64_t start_ns)
{
	p->start_ns = start_ns;
	p->newest_ns = max_u64(p->newest_ns, start_ns);
	if (start_ns >= p->gap_to_ns)
		p->gap_from_ns = p->gap_to_ns = 0;
}
