#include "daemon/broker/discovery/scan_cache.h"

#include <stdbool.h>

/*
 * Bit of the key under which a pid's user is stored. Without it the key is the pid, and the
 * value its program_hash.
 */
#define USER_OF (UINT64_C(1) << 32)

void scan_cache_init(struct scan_cache *m)
{
	table_init(&m->seen, 0);
	table_init(&m->seeing, 0);
}

void scan_cache_fini(struct scan_cache *m)
{
	table_fini(&m->seen);
	table_fini(&m->seeing);
}

static bool is_same(struct scan_cache *m, uint64_t key, uint32_t now, bool *ret_new)
{
	uint32_t before;

	*ret_new = !table_get(&m->seen, key, &before);
	(void)!table_put(&m->seeing, key, now);
	return !*ret_new && before == now;
}

enum scan_cache_change scan_cache_compare(struct scan_cache *m, int32_t pid, uint32_t program_hash,
					  uint32_t uid)
{
	const uint64_t key = (uint64_t)pid;
	bool is_new, has_no_user;
	bool same = is_same(m, key, program_hash, &is_new);
	bool same_user = uid == SCAN_CACHE_NO_USER ||
			 is_same(m, key | USER_OF, uid, &has_no_user) || has_no_user;

	if (is_new)
		return SCAN_CACHE_NEW;
	if (!same)
		return SCAN_CACHE_PROGRAM;
	return same_user ? SCAN_CACHE_SAME : SCAN_CACHE_USER;
}

void scan_cache_end_scan(struct scan_cache *m)
{
	struct table seen = m->seen;

	m->seen = m->seeing;
	m->seeing = seen;
	table_clear(&m->seeing);
}

void scan_cache_forget(struct scan_cache *m)
{
	table_clear(&m->seen);
}
