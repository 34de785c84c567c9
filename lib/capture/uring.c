#include "lib/capture/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/capture/proc.h"

/* A completion takes some 40 bytes of text; few wait for so many at once. */
#define TEXT_BYTES (32 << 10)

/* Of the name below /proc: two numbers of 32 bits. */
#define NAME_BYTES 64

static bool number_after(const char *text, const char *label, uint64_t *ret)
{
	const char *at = strstr(text, label);
	char *end;

	if (at == NULL)
		return false;
	at += strlen(label);
	*ret = strtoull(at, &end, 0);
	return end != at;
}

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
	char name[NAME_BYTES];
	uint64_t mask, head, tail;
	uint32_t n;

	(void)snprintf(name, sizeof(name), "/proc/%u/fdinfo/%u", tid,
		       (unsigned int)fd);
	if (proc_read_text(AT_FDCWD, name, text, sizeof(text)) != PROC_READ ||
	    !number_after(text, "\nCqMask:", &mask) ||
	    !number_after(text, "\nCqHead:", &head) ||
	    !number_after(text, "\nCqTail:", &tail))
		return false;
	n = (uint32_t)tail - (uint32_t)head;
	return n < min_u64(wanted, mask + 1) && has_no_timeout(text, n);
}
