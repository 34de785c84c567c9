#include "daemon/unwind/measures.h"

#include <string.h>

void measures_init(struct measures *m)
{
	m->n = 0;
	m->given = 0;
}

/* The first n are needed no more. */
static void drop(struct measures *m, size_t n)
{
	m->n -= n;
	memmove(m->v, m->v + n, m->n * sizeof(m->v[0]));
}

void measures_add(struct measures *m, const struct profile_measure *v)
{
	drop(m, m->given);
	m->given = 0;
	if (m->n < MEASURES_MAX && (m->n == 0 || v->time_us > m->v[m->n - 1].time_us))
		m->v[m->n++] = *v;
}

void measures_give(struct measures *m, struct profile *ret)
{
	uint64_t first_us, last_us;
	size_t old = m->given, n = 0;

	ret->measures = m->v;
	ret->n_measures = 0;
	if (ret->n_samples == 0)
		return;
	first_us = ret->samples[0].time_us;
	last_us = ret->samples[ret->n_samples - 1].time_us;
	while (old < m->n && m->v[old].time_us < first_us)
		old++;
	drop(m, old);
	while (n < m->n && m->v[n].time_us <= last_us)
		n++;
	ret->n_measures = n;
	m->given = n;
}
