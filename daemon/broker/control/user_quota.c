#include "daemon/broker/control/user_quota.h"

#include <assert.h>
#include <string.h>

#include "lib/base/token_bucket.h"

/*
 * The share of the process's descriptors for connections is one in this number; the others are
 * for chunks and targets.
 */
#define DESCRIPTORS_SHARE 4

/* One small message, as time in the token bucket. */
#define PIECE_NS (NS_PER_SEC / USER_QUOTA_PER_SECOND)

void user_quota_init(struct user_quotas *a, uint64_t descriptors)
{
	memset(a, 0, sizeof(*a));
	a->connections_max =
		(size_t)min_u64(USER_QUOTA_CONNECTIONS_MAX, descriptors / DESCRIPTORS_SHARE);
}

/* Returns the entry of uid, or NULL if it has no connection. */
static struct user_quota *find_user(struct user_quotas *a, uint32_t uid)
{
	if (uid == USER_QUOTA_OPERATORS)
		return &a->operators;
	for (size_t i = 0; i < USER_QUOTA_USERS; i++)
		if (a->users[i].connections > 0 && a->users[i].uid == uid)
			return &a->users[i];
	return NULL;
}

/*
 * Returns the entry that uid had before, so that closing a connection does not cancel a debt; or
 * the free entry whose bucket is full earliest. NULL: there is none.
 */
static struct user_quota *find_free_entry(struct user_quotas *a, uint32_t uid)
{
	struct user_quota *free = NULL;

	for (size_t i = 0; i < USER_QUOTA_USERS; i++) {
		struct user_quota *u = &a->users[i];

		if (u->connections > 0)
			continue;
		if (u->uid == uid)
			return u;
		if (free == NULL || u->full_ns < free->full_ns)
			free = u;
	}
	if (free != NULL)
		*free = (struct user_quota){.uid = uid};
	return free;
}

/* Returns the number of connections that uid leaves to operators. */
static size_t reserved(const struct user_quotas *a, uint32_t uid)
{
	return uid == USER_QUOTA_OPERATORS ? 0
					   : min_size(USER_QUOTA_RESERVED, a->connections_max / 2);
}

bool user_quota_open(struct user_quotas *a, uint32_t uid, size_t of_process)
{
	struct user_quota *u = find_user(a, uid);

	if (a->connections + reserved(a, uid) >= a->connections_max ||
	    of_process >= USER_QUOTA_PROCESS_MAX)
		return false;
	if (u == NULL)
		u = find_free_entry(a, uid);
	if (u == NULL || u->connections >= USER_QUOTA_USER_MAX)
		return false;
	u->connections++;
	a->connections++;
	return true;
}

bool user_quota_is_full(const struct user_quotas *a)
{
	size_t n = 0;

	for (size_t i = 0; i < USER_QUOTA_USERS; i++)
		n += a->users[i].connections > 0;
	return n == USER_QUOTA_USERS || a->connections + reserved(a, 0) >= a->connections_max;
}

void user_quota_close(struct user_quotas *a, uint32_t uid)
{
	struct user_quota *u = find_user(a, uid);

	assert(u != NULL && a->connections > 0);
	u->connections--;
	a->connections--;
}

bool user_quota_may_request(struct user_quotas *a, uint32_t uid, uint64_t now_ns)
{
	const struct user_quota *u = find_user(a, uid);

	assert(u != NULL);
	return token_bucket_holds(u->full_ns, USER_QUOTA_AT_ONCE * PIECE_NS, now_ns, PIECE_NS);
}

void user_quota_use(struct user_quotas *a, uint32_t uid, uint32_t work, uint64_t now_ns)
{
	struct user_quota *u = find_user(a, uid);

	assert(u != NULL);
	token_bucket_take(&u->full_ns, now_ns, work * PIECE_NS);
}
