#include "daemon/ctl/formats.h"

#include <string.h>

#include "daemon/ctl/summary.h"
#include "proto/export/html.h"

static const struct format formats[OUTPUT_FORMATS_N] = {
	[OUTPUT_FORMAT_FOLDED] = {&output_formats[OUTPUT_FORMAT_FOLDED], true, false, false,
				  export_folded},
	[OUTPUT_FORMAT_SPEEDSCOPE] = {&output_formats[OUTPUT_FORMAT_SPEEDSCOPE], true, true, false,
				      export_speedscope},
	[OUTPUT_FORMAT_PPROF] = {&output_formats[OUTPUT_FORMAT_PPROF], false, false, false,
				 export_pprof},
	[OUTPUT_FORMAT_FIREFOX] = {&output_formats[OUTPUT_FORMAT_FIREFOX], false, true, false,
				   export_firefox},
	[OUTPUT_FORMAT_SELF_PROFILING] = {&output_formats[OUTPUT_FORMAT_SELF_PROFILING], true, true,
					  false, export_self_profiling},
	[OUTPUT_FORMAT_JSON] = {&output_formats[OUTPUT_FORMAT_JSON], false, true, true,
				export_json},
	[OUTPUT_FORMAT_SUMMARY] = {&output_formats[OUTPUT_FORMAT_SUMMARY], true, false, false,
				   summary_write},
	[OUTPUT_FORMAT_HTML] = {&output_formats[OUTPUT_FORMAT_HTML], false, true, true,
				export_html},
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
	const struct output_format *found = output_format_of_path(path);

	return found == NULL ? NULL : &formats[found - output_formats];
}
