#include "daemon/broker/discovery/sightings.h"

#include <stdlib.h>

#include "lib/base/array.h"

void sightings_init(struct sightings *s)
{
	*s = (struct sightings){.n = 0};
	table_init(&s->places, 0);
}

void sightings_fini(struct sightings *s)
{
	table_fini(&s->places);
	free(s->v);
	*s = (struct sightings){.n = 0};
}

static int make_room(struct sightings *s)
{
	return s->n == SIGHTINGS_MAX ? -ENOSPC : array_grow(s->v, s->n, s->size);
}

static void merge(struct sighting *known, const struct sighting *new)
{
	if (new->of != SIGHTING_OTHER)
		*known = *new;
	else
		known->due_ns = min_u64(known->due_ns, new->due_ns);
}

int sightings_add(struct sightings *s, const struct sighting *new)
{
	uint32_t place;
	int r;

	if (table_get(&s->places, (uint64_t) new->pid, &place)) {
		merge(&s->v[place], new);
		return 0;
	}
	r = make_room(s);
	if (r == 0)
		r = table_put(&s->places, (uint64_t) new->pid, (uint32_t)s->n);
	if (r == 0)
		s->v[s->n++] = *new;
	return r;
}

/* The last one takes its place. */
static void drop(struct sightings *s, size_t at)
{
	(void)table_remove(&s->places, (uint64_t)s->v[at].pid);
	s->n--;
	if (at == s->n)
		return;
	s->v[at] = s->v[s->n];
	/* The key is there already: that takes no memory. */
	(void)!table_put(&s->places, (uint64_t)s->v[at].pid, (uint32_t)at);
}

void sightings_turn(struct sightings *s)
{
	s->left = s->n;
}

bool sightings_take(struct sightings *s, uint64_t now_ns, struct sighting *ret)
{
	for (; s->left > 0 && s->n > 0; s->left--) {
		if (s->at >= s->n)
			s->at = 0;
		if (s->v[s->at].due_ns > now_ns) {
			s->at++;
			continue;
		}
		*ret = s->v[s->at];
		drop(s, s->at);
		s->left--;
		return true;
	}
	return false;
}
