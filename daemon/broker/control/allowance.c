#include "daemon/broker/control/allowance.h"

#include <assert.h>
#include <string.h>

#include "lib/base/bucket.h"

/*
 * The share of the process's descriptors for connections is one in this number; the others are
 * for chunks and targets.
 */
#define DESCRIPTORS_SHARE 4

/* One small message, as time in the token bucket. */
#define PIECE_NS (NS_PER_SEC / ALLOWANCE_PER_SECOND)

void allowance_init(struct allowance *a, uint64_t descriptors)
{
	memset(a, 0, sizeof(*a));
	a->connections_max =
		(size_t)min_u64(ALLOWANCE_CONNECTIONS_MAX, descriptors / DESCRIPTORS_SHARE);
}

/* Returns the entry of uid, or NULL if it has no connection. */
static struct allowance_user *find_user(struct allowance *a, uint32_t uid)
{
	if (uid == ALLOWANCE_OPERATORS)
		return &a->operators;
	for (size_t i = 0; i < ALLOWANCE_USERS; i++)
		if (a->users[i].connections > 0 && a->users[i].uid == uid)
			return &a->users[i];
	return NULL;
}

/*
 * Returns the entry that uid had before, so that closing a connection does not cancel a debt; or
 * the free entry whose bucket is full earliest. NULL: there is none.
 */
static struct allowance_user *find_free_entry(struct allowance *a, uint32_t uid)
{
	struct allowance_user *free = NULL;

	for (size_t i = 0; i < ALLOWANCE_USERS; i++) {
		struct allowance_user *u = &a->users[i];

		if (u->connections > 0)
			continue;
		if (u->uid == uid)
			return u;
		if (free == NULL || u->full_ns < free->full_ns)
			free = u;
	}
	if (free != NULL)
		*free = (struct allowance_user){.uid = uid};
	return free;
}

/* Returns the number of connections that uid leaves to operators. */
static size_t reserved(const struct allowance *a, uint32_t uid)
{
	return uid == ALLOWANCE_OPERATORS ? 0
					  : min_size(ALLOWANCE_RESERVED, a->connections_max / 2);
}

bool allowance_open(struct allowance *a, uint32_t uid, size_t of_process)
{
	struct allowance_user *u = find_user(a, uid);

	if (a->connections + reserved(a, uid) >= a->connections_max ||
	    of_process >= ALLOWANCE_PROCESS_MAX)
		return false;
	if (u == NULL)
		u = find_free_entry(a, uid);
	if (u == NULL || u->connections >= ALLOWANCE_USER_MAX)
		return false;
	u->connections++;
	a->connections++;
	return true;
}

bool allowance_is_full(const struct allowance *a)
{
	size_t n = 0;

	for (size_t i = 0; i < ALLOWANCE_USERS; i++)
		n += a->users[i].connections > 0;
	return n == ALLOWANCE_USERS || a->connections + reserved(a, 0) >= a->connections_max;
}

void allowance_close(struct allowance *a, uint32_t uid)
{
	struct allowance_user *u = find_user(a, uid);

	assert(u != NULL && a->connections > 0);
	u->connections--;
	a->connections--;
}

bool allowance_may_request(struct allowance *a, uint32_t uid, uint64_t now_ns)
{
	const struct allowance_user *u = find_user(a, uid);

	assert(u != NULL);
	return bucket_holds(u->full_ns, ALLOWANCE_AT_ONCE * PIECE_NS, now_ns, PIECE_NS);
}

void allowance_use(struct allowance *a, uint32_t uid, uint32_t work, uint64_t now_ns)
{
	struct allowance_user *u = find_user(a, uid);

	assert(u != NULL);
	bucket_take(&u->full_ns, now_ns, work * PIECE_NS);
}
