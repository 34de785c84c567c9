#include "daemon/process/credentials.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/process/process.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

bool credentials_read(int32_t pid, struct credentials *ret)
{
	char text[PROCFS_TEXT_MAX];

	ret->owner = process_owner(pid);
	return ret->owner != UINT32_MAX &&
	       small_file_read(AT_FDCWD, procfs_path(pid, "status").text, text, sizeof(text)) ==
		       0 &&
	       procfs_numbers(text, "\nUid:", 10, ret->uid, 4) == 4 &&
	       procfs_numbers(text, "\nGid:", 10, ret->gid, 4) == 4 &&
	       procfs_numbers(text, "\nCapPrm:", 16, &ret->permitted, 1) == 1;
}

bool credentials_are_equal(const struct credentials *a, const struct credentials *b)
{
	/* All members are uint64_t: there is no padding. */
	return memcmp(a, b, sizeof(*a)) == 0;
}
