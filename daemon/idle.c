#include "daemon/idle.h"

#include <stdlib.h>

static bool is_needed(struct broker *b, const struct unwind *u)
{
	FOR_EACH_TARGET (t, b)
		if (t->unwind == u)
			return true;
	return false;
}

/* The end of its socket ends it; one that is dead is not started again. */
static void end(struct unwind *u)
{
	u->is_leaving = true;
	u->child.restart_ns = 0;
	child_close(&u->child);
}

static void forget(struct broker *b, struct unwind *u)
{
	struct usage *gone = &b->unwinds_gone;

	gone->cpu_s += u->child.usage.cpu_s;
	gone->rss_bytes = max_u64(gone->rss_bytes, u->child.usage.rss_bytes);
	blame_end(u);
	free(u);
}

void idle_check(struct broker *b, uint64_t now_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_unwinds; i++) {
		struct unwind *u = b->unwinds[i];

		if (u->is_leaving && u->child.pid == 0) {
			forget(b, u);
			continue;
		}
		b->unwinds[n++] = u;
		if (is_needed(b, u))
			u->idle_since_ns = now_ns;
		else if (!u->is_leaving && now_ns - u->idle_since_ns >= IDLE_NS)
			end(u);
	}
	b->n_unwinds = n;
}
