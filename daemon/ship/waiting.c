#include "daemon/ship/waiting.h"

#include <assert.h>
#include <string.h>

bool waiting_has_room(const struct waiting *w, const struct sending *s)
{
	return w->n < WAITING_MAX && w->bytes + s->package.payload_size <= WAITING_BYTES_MAX;
}

static void put(struct waiting *w, size_t at, struct sending *s)
{
	assert(w->n < WAITING_MAX);
	memmove(w->oldest_first + at + 1, w->oldest_first + at,
		(w->n - at) * sizeof(w->oldest_first[0]));
	w->oldest_first[at] = s;
	w->n++;
	w->bytes += s->package.payload_size;
}

void waiting_add(struct waiting *w, struct sending *s)
{
	put(w, w->n, s);
}

void waiting_put_back(struct waiting *w, struct sending *s)
{
	put(w, 0, s);
}

struct sending *waiting_take(struct waiting *w)
{
	struct sending *s = w->oldest_first[0];

	assert(w->n > 0);
	w->n--;
	w->bytes -= s->package.payload_size;
	memmove(w->oldest_first, w->oldest_first + 1, w->n * sizeof(w->oldest_first[0]));
	return s;
}
