/* In a file of its own, so that programs which only need the names do not link the unwinder. */
#include "lib/unwind/unwind.h"

#include <assert.h>

const char *unwind_end_name(enum unwind_end end)
{
	static const char *const names[UNWIND_END_N] = {
		[UNWIND_END_ROOT] = "root",
		[UNWIND_END_NO_MAP] = "no_map",
		[UNWIND_END_NO_CFI] = "no_cfi",
		[UNWIND_END_BAD_CFA] = "bad_cfa",
		[UNWIND_END_UNREADABLE] = "unreadable",
		[UNWIND_END_UNKNOWN_REGISTER] = "unknown_register",
		[UNWIND_END_CAPPED] = "capped",
		[UNWIND_END_MAX_FRAMES] = "max_frames",
		[UNWIND_END_SIGNALS] = "cycle",
	};

	assert(end < UNWIND_END_N);
	return names[end];
}
