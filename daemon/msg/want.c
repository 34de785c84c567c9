#include "daemon/msg/want.h"

#include <string.h>

#include "lib/base/file_name.h"

/* The smallest page of all architectures: larger ones are multiples of it. */
#define PAGE_MIN 4096

/* A debug file's path is .build-id/XX/YY.debug: two bytes at least. */
#define BUILD_ID_DIGITS_MIN 4

static bool is_range(const struct msg_want *want)
{
	return want->start < want->end && want->start % PAGE_MIN == 0 && want->end % PAGE_MIN == 0;
}

static bool is_build_id(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	return n < size && n >= BUILD_ID_DIGITS_MIN && strspn(text, "0123456789abcdef") == n;
}

static enum want_verdict good_if(bool is_good)
{
	return is_good ? WANT_GOOD : WANT_REFUSED;
}

enum want_verdict want_check(const struct msg_want *want)
{
	switch ((enum want_kind)want->kind) {
	case WANT_MAPS:
	case WANT_PROGRAM:
	case WANT_CMDLINE:
	case WANT_PERF_MAP:
		return WANT_GOOD;
	case WANT_IMAGE:
		return good_if(is_range(want));
	case WANT_DEBUG:
		return good_if(is_build_id(want->name, sizeof(want->name)));
	case WANT_DEBUG_LINK:
		return good_if(is_range(want) &&
			       file_name_is_plain(want->name, sizeof(want->name)));
	case WANT_PID_FILE:
	case WANT_EXE_LINK:
	case WANT_END:
		break;
	}
	return WANT_BROKEN;
}
