#include "daemon/ctl/common/temporary.h"

#include <stdlib.h>
#include <unistd.h>

#include "lib/base/util.h"

const char *temporary_directory(void)
{
	static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};

	for (size_t i = 0; i < array_size(variables); i++) {
		const char *dir = getenv(variables[i]);

		if (dir != NULL && dir[0] == '/' && access(dir, W_OK) == 0)
			return dir;
	}
	return "/tmp";
}
