#include "lib/capture/proc/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/procfs.h"
#include "lib/capture/proc/proc.h"

/* A completion takes some 40 bytes of text; few wait for so many at once. */
#define TEXT_BYTES (32 << 10)

/* All of the completions are in the text, and none is of a timeout. */
static bool has_no_timeout(const char *text, uint64_t n)
{
	static const char label[] = ", res:";

	for (const char *at = strstr(text, "\nCQEs:"); n > 0; n--) {
		long result;

		at = at != NULL ? strstr(at, label) : NULL;
		if (at == NULL)
			return false;
		at += sizeof(label) - 1;
		result = strtol(at, NULL, 10);
		if (result == -ETIME || result == -ECANCELED)
			return false;
	}
	return true;
}

bool uring_lacks(uint32_t tid, uint64_t fd, uint64_t wanted)
{
	static char text[TEXT_BYTES];
	uint64_t mask, head, tail;
	uint32_t n;

	if (proc_read_text(AT_FDCWD, procfs_path(tid, "fdinfo/%u", (unsigned int)fd).text, text,
			   sizeof(text)) != PROC_READ ||
	    procfs_numbers(text, "\nCqMask:", 0, &mask, 1) == 0 ||
	    procfs_numbers(text, "\nCqHead:", 0, &head, 1) == 0 ||
	    procfs_numbers(text, "\nCqTail:", 0, &tail, 1) == 0)
		return false;
	n = (uint32_t)tail - (uint32_t)head;
	return n < min_u64(wanted, mask + 1) && has_no_timeout(text, n);
}
