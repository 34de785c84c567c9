#include "daemon/broker/discovery/rechecks.h"

#include <stdlib.h>

#include "lib/base/array.h"

void rechecks_init(struct rechecks *s)
{
	*s = (struct rechecks){.n = 0};
	table_init(&s->places, 0);
}

void rechecks_fini(struct rechecks *s)
{
	table_fini(&s->places);
	free(s->v);
	*s = (struct rechecks){.n = 0};
}

static int make_room(struct rechecks *s)
{
	return s->n == RECHECKS_MAX ? -ENOSPC : array_grow(s->v, s->n, s->size);
}

static void update_entry(struct recheck *known, const struct recheck *new)
{
	if (new->cause != RECHECK_OTHER)
		*known = *new;
	else
		known->due_ns = min_u64(known->due_ns, new->due_ns);
}

int rechecks_add(struct rechecks *s, const struct recheck *new)
{
	uint32_t place;
	int r;

	if (table_get(&s->places, (uint64_t) new->pid, &place)) {
		update_entry(&s->v[place], new);
		return 0;
	}
	r = make_room(s);
	if (r == 0)
		r = table_put(&s->places, (uint64_t) new->pid, (uint32_t)s->n);
	if (r == 0)
		s->v[s->n++] = *new;
	return r;
}

/* Removes the entry at index at; the last entry moves there. */
static void remove_at(struct rechecks *s, size_t at)
{
	(void)table_remove(&s->places, (uint64_t)s->v[at].pid);
	s->n--;
	if (at == s->n)
		return;
	s->v[at] = s->v[s->n];
	/* Cannot fail: the key is in the table already. */
	(void)!table_put(&s->places, (uint64_t)s->v[at].pid, (uint32_t)at);
}

void rechecks_begin_pass(struct rechecks *s)
{
	s->left = s->n;
}

bool rechecks_take(struct rechecks *s, uint64_t now_ns, struct recheck *ret)
{
	for (; s->left > 0 && s->n > 0; s->left--) {
		if (s->at >= s->n)
			s->at = 0;
		if (s->v[s->at].due_ns > now_ns) {
			s->at++;
			continue;
		}
		*ret = s->v[s->at];
		remove_at(s, s->at);
		s->left--;
		return true;
	}
	return false;
}
