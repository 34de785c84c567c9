#include "daemon/process/credentials.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

bool credentials_parse(const char *status, uint32_t owner, struct credentials *ret)
{
	ret->owner = owner;
	return owner != UINT32_MAX && procfs_numbers(status, "\nUid:", 10, ret->uid, 4) == 4 &&
	       procfs_numbers(status, "\nGid:", 10, ret->gid, 4) == 4 &&
	       procfs_numbers(status, "\nCapPrm:", 16, &ret->permitted, 1) == 1;
}

bool credentials_read(int32_t pid, struct credentials *ret)
{
	char text[PROCFS_STATUS_MAX];
	/* The files of a leader that has exited belong to root. */
	const int32_t tid = threads_find_living(pid);
	const uint32_t owner = process_owner(tid);

	return small_file_read(AT_FDCWD, procfs_path(tid, "status").text, text, sizeof(text)) ==
		       0 &&
	       credentials_parse(text, owner, ret);
}

bool credentials_are_equal(const struct credentials *a, const struct credentials *b)
{
	/* All members are uint64_t: there is no padding. */
	return memcmp(a, b, sizeof(*a)) == 0;
}
