#include "daemon/ctl/ending.h"

#include <stddef.h>
#include <string.h>

const struct ending endings[ENDING_N] = {
	[ENDING_FOLDED] = {"folded", ".folded", "flamegraph.pl ",
			   " > profile.svg"},
	[ENDING_SPEEDSCOPE] = {"speedscope", ".speedscope.json", "load ",
			       " at https://www.speedscope.app"},
	[ENDING_PPROF] = {"pprof", ".pb.gz", "go tool pprof ", ""},
	[ENDING_FIREFOX] = {"firefox", ".firefox.json", "load ",
			    " at https://profiler.firefox.com"},
	[ENDING_SELF_PROFILING] = {"self-profiling", ".self-profiling.json", "",
				   ""},
	[ENDING_JSON] = {"json", ".json", NULL, NULL},
	[ENDING_SUMMARY] = {"summary", ".txt", "less ", ""},
	[ENDING_HTML] = {"html", ".html", NULL, NULL},
};

const struct ending *ending_of(const char *path)
{
	const struct ending *found = NULL;
	const size_t n = strlen(path);

	for (size_t i = 0; i < ENDING_N; i++) {
		const size_t length = strlen(endings[i].ending);

		if (n > length &&
		    strcmp(path + n - length, endings[i].ending) == 0 &&
		    (found == NULL || length > strlen(found->ending)))
			found = &endings[i];
	}
	return found;
}
