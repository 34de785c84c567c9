#include "daemon/broker/discovery/marks.h"

#include <stdbool.h>

/* Beside a pid's mark, which has the pid itself for a key. */
#define USER_OF (UINT64_C(1) << 32)

void marks_init(struct marks *m)
{
	table_init(&m->seen, 0);
	table_init(&m->seeing, 0);
}

void marks_fini(struct marks *m)
{
	table_fini(&m->seen);
	table_fini(&m->seeing);
}

static bool is_same(struct marks *m, uint64_t key, uint32_t now, bool *ret_new)
{
	uint32_t before;

	*ret_new = !table_get(&m->seen, key, &before);
	(void)!table_put(&m->seeing, key, now);
	return !*ret_new && before == now;
}

enum mark_change marks_compare(struct marks *m, int32_t pid, uint32_t mark, uint32_t uid)
{
	const uint64_t key = (uint64_t)pid;
	bool is_new, has_no_user;
	bool same = is_same(m, key, mark, &is_new);
	bool same_user =
		uid == MARKS_NO_USER || is_same(m, key | USER_OF, uid, &has_no_user) || has_no_user;

	if (is_new)
		return MARK_NEW;
	if (!same)
		return MARK_PROGRAM;
	return same_user ? MARK_SAME : MARK_USER;
}

void marks_turn(struct marks *m)
{
	struct table seen = m->seen;

	m->seen = m->seeing;
	m->seeing = seen;
	table_clear(&m->seeing);
}

void marks_forget(struct marks *m)
{
	table_clear(&m->seen);
}
