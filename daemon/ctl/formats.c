#include "daemon/ctl/formats.h"

#include <string.h>

#include "daemon/ctl/summary.h"
#include "proto/export/html.h"

static const struct format formats[ENDING_N] = {
	[ENDING_FOLDED] = {&endings[ENDING_FOLDED], true, false, false, export_folded},
	[ENDING_SPEEDSCOPE] = {&endings[ENDING_SPEEDSCOPE], true, true, false, export_speedscope},
	[ENDING_PPROF] = {&endings[ENDING_PPROF], false, false, false, export_pprof},
	[ENDING_FIREFOX] = {&endings[ENDING_FIREFOX], false, true, false, export_firefox},
	[ENDING_SELF_PROFILING] = {&endings[ENDING_SELF_PROFILING], true, true, false,
				   export_self_profiling},
	[ENDING_JSON] = {&endings[ENDING_JSON], false, true, true, export_json},
	[ENDING_SUMMARY] = {&endings[ENDING_SUMMARY], true, false, false, summary_write},
	[ENDING_HTML] = {&endings[ENDING_HTML], false, true, true, export_html},
};

const struct format *format_at(size_t at)
{
	return at < array_size(formats) ? &formats[at] : NULL;
}

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < array_size(formats); i++)
		if (strcmp(formats[i].is->format, name) == 0)
			return &formats[i];
	return NULL;
}

const struct format *format_by_ending(const char *path)
{
	const struct ending *ending = ending_of(path);

	return ending == NULL ? NULL : &formats[ending - endings];
}
