#include "daemon/common/output_format.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/shell_word.h"

const struct output_format output_formats[OUTPUT_FORMATS_N] = {
	[OUTPUT_FORMAT_FOLDED] = {"folded", ".folded", "flamegraph.pl ", " > profile.svg"},
	[OUTPUT_FORMAT_SPEEDSCOPE] = {"speedscope", ".speedscope.json", "load ",
				      " at https://www.speedscope.app"},
	[OUTPUT_FORMAT_PPROF] = {"pprof", ".pb.gz", "go tool pprof ", ""},
	[OUTPUT_FORMAT_FIREFOX] = {"firefox", ".firefox.json", "load ",
				   " at https://profiler.firefox.com"},
	[OUTPUT_FORMAT_SELF_PROFILING] = {"self-profiling", ".self-profiling.json", "", ""},
	[OUTPUT_FORMAT_JSON] = {"json", ".json", NULL, NULL},
	[OUTPUT_FORMAT_SUMMARY] = {"summary", ".txt", "less ", ""},
	[OUTPUT_FORMAT_HTML] = {"html", ".html", NULL, NULL},
	[OUTPUT_FORMAT_SVG] = {"svg", ".svg", "xdg-open ", ""},
};

const struct output_format *output_format_of_path(const char *path)
{
	const struct output_format *found = NULL;
	const size_t n = strlen(path);

	for (size_t i = 0; i < OUTPUT_FORMATS_N; i++) {
		const size_t length = strlen(output_formats[i].suffix);

		if (n > length && strcmp(path + n - length, output_formats[i].suffix) == 0 &&
		    (found == NULL || length > strlen(found->suffix)))
			found = &output_formats[i];
	}
	return found;
}

void output_format_print_viewer(const struct output_format *format, const char *profctl,
				const char *path)
{
	char words[2][SHELL_WORD_SIZE(PATH_MAX)];

	(void)shell_word(profctl, words[0], sizeof(words[0]));
	(void)shell_word(path, words[1], sizeof(words[1]));
	if (format->view_before == NULL)
		(void)fprintf(stderr, "to see it: %s view %s\n", words[0], words[1]);
	else if (format->view_before[0] != '\0')
		(void)fprintf(stderr, "to see it: %s%s%s\n", format->view_before, words[1],
			      format->view_after);
}
