#include "daemon/unwind/usage_buffer.h"

#include <string.h>

void usage_buffer_init(struct usage_buffer *b)
{
	b->n = 0;
	b->n_given = 0;
}

/* Drops the first n values. */
static void drop(struct usage_buffer *b, size_t n)
{
	b->n -= n;
	memmove(b->v, b->v + n, b->n * sizeof(b->v[0]));
}

void usage_buffer_add(struct usage_buffer *b, const struct profile_measurement *v)
{
	drop(b, b->n_given);
	b->n_given = 0;
	if (b->n < USAGE_BUFFER_MAX && (b->n == 0 || v->time_us > b->v[b->n - 1].time_us))
		b->v[b->n++] = *v;
}

void usage_buffer_give(struct usage_buffer *b, struct profile *p)
{
	uint64_t first_us, last_us;
	size_t old = b->n_given, n = 0;

	p->measurements = b->v;
	p->n_measurements = 0;
	if (p->n_samples == 0)
		return;
	first_us = p->samples[0].time_us;
	last_us = p->samples[p->n_samples - 1].time_us;
	while (old < b->n && b->v[old].time_us < first_us)
		old++;
	drop(b, old);
	while (n < b->n && b->v[n].time_us <= last_us)
		n++;
	p->n_measurements = n;
	b->n_given = n;
}
