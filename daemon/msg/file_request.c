#include "daemon/msg/file_request.h"

#include <string.h>

#include "lib/base/file_name.h"

/* The smallest page of all architectures. Larger pages are multiples of it. */
#define PAGE_MIN 4096

/* The path of a debug file is .build-id/XX/YY.debug, so a build-id has two bytes or more. */
#define BUILD_ID_DIGITS_MIN 4

static bool is_range(const struct msg_file_request *request)
{
	return request->start < request->end && request->start % PAGE_MIN == 0 &&
	       request->end % PAGE_MIN == 0;
}

static bool is_build_id(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	return n < size && n >= BUILD_ID_DIGITS_MIN && strspn(text, "0123456789abcdef") == n;
}

static enum file_request_verdict valid_if(bool is_valid)
{
	return is_valid ? FILE_REQUEST_VALID : FILE_REQUEST_REFUSED;
}

enum file_request_verdict file_request_check(const struct msg_file_request *request)
{
	switch ((enum file_kind)request->kind) {
	case FILE_KIND_MAPS:
	case FILE_KIND_PROGRAM:
	case FILE_KIND_CMDLINE:
	case FILE_KIND_PERF_MAP:
		return FILE_REQUEST_VALID;
	case FILE_KIND_IMAGE:
		return valid_if(is_range(request));
	case FILE_KIND_DEBUG:
		return valid_if(is_build_id(request->name, sizeof(request->name)));
	case FILE_KIND_DEBUG_LINK:
		return valid_if(is_range(request) &&
				file_name_is_plain(request->name, sizeof(request->name)));
	case FILE_KIND_PID_FILE:
	case FILE_KIND_EXE_LINK:
	case FILE_KIND_CODE_LIST:
	case FILE_KIND_CODE:
	case FILE_KIND_LEAK_OPTIONS:
	case FILE_KIND_ENVIRON:
	case FILE_KIND_END:
		break;
	}
	return FILE_REQUEST_VIOLATION;
}
