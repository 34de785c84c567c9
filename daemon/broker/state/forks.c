#include "daemon/broker/state/forks.h"

#include "lib/base/table.h"

/* The pids; the values mean nothing. No child can choose pids, so the seed is 0. */
static struct table forks;

void forks_add(int32_t pid)
{
	(void)!table_put(&forks, (uint64_t)pid, 0);
}

bool forks_have(int32_t pid)
{
	uint32_t value;

	return table_get(&forks, (uint64_t)pid, &value);
}

bool forks_remove(int32_t pid)
{
	return table_remove(&forks, (uint64_t)pid);
}
