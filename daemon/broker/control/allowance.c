#include "daemon/broker/control/allowance.h"

#include <assert.h>
#include <string.h>

/* Of the process's descriptors: the others are for chunks and targets. */
#define DESCRIPTORS_SHARE 4

void allowance_init(struct allowance *a, uint64_t descriptors)
{
	memset(a, 0, sizeof(*a));
	a->connections_max =
		(size_t)min_u64(ALLOWANCE_CONNECTIONS_MAX, descriptors / DESCRIPTORS_SHARE);
}

static struct allowance_user *find(struct allowance *a, uint32_t uid)
{
	for (size_t i = 0; i < ALLOWANCE_USERS; i++)
		if (a->users[i].connections > 0 && a->users[i].uid == uid)
			return &a->users[i];
	return NULL;
}

/*
 * Of the free entries the one that has been so for longest, so that what uid
 * owed when he closed is not forgotten soon.
 */
static struct allowance_user *find_free(struct allowance *a, uint32_t uid, uint64_t now_ns)
{
	struct allowance_user *free = NULL;

	for (size_t i = 0; i < ALLOWANCE_USERS; i++) {
		struct allowance_user *u = &a->users[i];

		if (u->connections > 0)
			continue;
		if (u->filled_ns != 0 && u->uid == uid)
			return u;
		if (free == NULL || u->filled_ns < free->filled_ns)
			free = u;
	}
	if (free != NULL)
		*free = (struct allowance_user){
			.uid = uid,
			.work = ALLOWANCE_AT_ONCE,
			.filled_ns = now_ns,
		};
	return free;
}

bool allowance_open(struct allowance *a, uint32_t uid, bool is_operator, size_t of_process,
		    uint64_t now_ns)
{
	const size_t reserved =
		is_operator ? 0 : min_size(ALLOWANCE_RESERVED, a->connections_max / 2);
	struct allowance_user *u = find(a, uid);

	if (a->connections + reserved >= a->connections_max || of_process >= ALLOWANCE_PROCESS_MAX)
		return false;
	if (u == NULL)
		u = find_free(a, uid, now_ns);
	if (u == NULL || u->connections >= ALLOWANCE_USER_MAX)
		return false;
	u->connections++;
	a->connections++;
	return true;
}

void allowance_close(struct allowance *a, uint32_t uid)
{
	struct allowance_user *u = find(a, uid);

	assert(u != NULL && a->connections > 0);
	u->connections--;
	a->connections--;
}

static void fill(struct allowance_user *u, uint64_t now_ns)
{
	const uint64_t piece_ns = NS_PER_SEC / ALLOWANCE_PER_SECOND;
	const uint64_t pieces = now_ns > u->filled_ns ? (now_ns - u->filled_ns) / piece_ns : 0;

	if (pieces == 0)
		return;
	u->filled_ns += pieces * piece_ns;
	u->work += (int64_t)min_u64(pieces, INT32_MAX);
	if (u->work > ALLOWANCE_AT_ONCE)
		u->work = ALLOWANCE_AT_ONCE;
}

bool allowance_may_ask(struct allowance *a, uint32_t uid, uint64_t now_ns)
{
	struct allowance_user *u = find(a, uid);

	assert(u != NULL);
	fill(u, now_ns);
	return u->work > 0;
}

void allowance_use(struct allowance *a, uint32_t uid, uint32_t work)
{
	struct allowance_user *u = find(a, uid);

	assert(u != NULL);
	u->work -= work;
}
