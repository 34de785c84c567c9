#include "daemon/ctl/formats.h"

#include <string.h>

#include "daemon/ctl/summary.h"
#include "proto/export/html.h"

static const struct format formats[] = {
	{"folded", ".folded", true, false, false, export_folded},
	{"speedscope", ".speedscope.json", true, true, false,
	 export_speedscope},
	{"pprof", ".pb.gz", false, false, false, export_pprof},
	{"firefox", ".firefox.json", false, true, false, export_firefox},
	{"self-profiling", ".self-profiling.json", true, true, false,
	 export_self_profiling},
	{"json", ".json", false, true, true, export_json},
	{"summary", ".txt", true, false, false, summary_write},
	{"html", ".html", false, true, true, export_html},
};

const struct format *format_at(size_t at)
{
	return at < array_size(formats) ? &formats[at] : NULL;
}

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < array_size(formats); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

const struct format *format_by_ending(const char *path)
{
	const struct format *found = NULL;
	const size_t n = strlen(path);

	for (size_t i = 0; i < array_size(formats); i++) {
		const size_t length = strlen(formats[i].ending);

		if (n > length &&
		    strcmp(path + n - length, formats[i].ending) == 0 &&
		    (found == NULL || length > strlen(found->ending)))
			found = &formats[i];
	}
	return found;
}
