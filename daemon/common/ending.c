#include "daemon/common/ending.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/shell_word.h"

const struct ending endings[ENDING_N] = {
	[ENDING_FOLDED] = {"folded", ".folded", "flamegraph.pl ", " > profile.svg"},
	[ENDING_SPEEDSCOPE] = {"speedscope", ".speedscope.json", "load ",
			       " at https://www.speedscope.app"},
	[ENDING_PPROF] = {"pprof", ".pb.gz", "go tool pprof ", ""},
	[ENDING_FIREFOX] = {"firefox", ".firefox.json", "load ",
			    " at https://profiler.firefox.com"},
	[ENDING_SELF_PROFILING] = {"self-profiling", ".self-profiling.json", "", ""},
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

		if (n > length && strcmp(path + n - length, endings[i].ending) == 0 &&
		    (found == NULL || length > strlen(found->ending)))
			found = &endings[i];
	}
	return found;
}

void ending_tell_next(const struct ending *e, const char *profctl, const char *path)
{
	char words[2][SHELL_WORD_SIZE(PATH_MAX)];

	(void)shell_word(profctl, words[0], sizeof(words[0]));
	(void)shell_word(path, words[1], sizeof(words[1]));
	if (e->view_before == NULL)
		(void)fprintf(stderr, "to see it: %s view %s\n", words[0], words[1]);
	else if (e->view_before[0] != '\0')
		(void)fprintf(stderr, "to see it: %s%s%s\n", e->view_before, words[1],
			      e->view_after);
}
