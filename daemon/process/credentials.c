#include "daemon/process/credentials.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

bool credentials_parse(const char *status, uint32_t files_uid, struct credentials *ret)
{
	struct credentials c = {.files_uid = files_uid};

	if (files_uid == UINT32_MAX || !ids_parse(status, &c.ids) ||
	    procfs_numbers(status, "\nCapPrm:", 16, &c.permitted, 1) != 1)
		return false;
	*ret = c;
	return true;
}

bool credentials_read(int32_t pid, struct credentials *ret)
{
	char text[PROCFS_STATUS_MAX];
	/* The files of a leader that has exited belong to root. */
	const int32_t tid = threads_find_living(pid);
	const uint32_t files_uid = process_owner(tid);

	return small_file_read(AT_FDCWD, procfs_path(tid, "status").text, text, sizeof(text)) ==
		       0 &&
	       credentials_parse(text, files_uid, ret);
}

/* The struct has no padding. */
_Static_assert(sizeof(struct credentials) == 2 * IDS_N * 4 + 2 * 8, "padding");

bool credentials_are_equal(const struct credentials *a, const struct credentials *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}
