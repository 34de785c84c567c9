#include "daemon/process/ids.h"

#include <string.h>

#include "lib/base/procfs.h"
#include "lib/base/siphash.h"

static bool parse_line(const char *status, const char *key, uint32_t ret[IDS_N])
{
	uint64_t ids[IDS_N];

	if (procfs_numbers(status, key, 10, ids, IDS_N) < IDS_N)
		return false;
	for (size_t i = 0; i < IDS_N; i++)
		ret[i] = (uint32_t)ids[i];
	return true;
}

bool ids_parse(const char *status, struct ids *ret)
{
	struct ids ids = {0};

	if (!parse_line(status, "\nUid:", ids.uid) || !parse_line(status, "\nGid:", ids.gid))
		return false;
	*ret = ids;
	return true;
}

/* The hash is of the line as it stands. */
bool ids_parse_groups(const char *status, uint32_t ret[IDS_GROUPS_MAX], uint32_t *ret_n,
		      uint64_t *ret_hash)
{
	static const uint8_t no_key[SIPHASH_KEY_SIZE];
	static const char key[] = "\nGroups:";
	const char *line = strstr(status, key);
	const char *end = line == NULL ? NULL : strchr(line + 1, '\n');
	uint64_t groups[IDS_GROUPS_MAX];

	if (end == NULL)
		return false;
	*ret_hash = siphash(no_key, line, (size_t)(end - line));
	*ret_n = (uint32_t)procfs_numbers(status, key, 10, groups, IDS_GROUPS_MAX);
	for (uint32_t i = 0; i < *ret_n; i++)
		ret[i] = (uint32_t)groups[i];
	return true;
}
