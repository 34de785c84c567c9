/*
 * The formats of sentry-profctl convert by name, by the ending of a file's
 * name, and by what shows the file. sentry-profd knows by it which names of
 * --output are files, and links no code that writes a format
 * (daemon/ctl/convert/formats.h).
 */
#ifndef DAEMON_COMMON_OUTPUT_FORMAT_H
#define DAEMON_COMMON_OUTPUT_FORMAT_H

enum output_format_id {
	OUTPUT_FORMAT_FOLDED,
	OUTPUT_FORMAT_SPEEDSCOPE,
	OUTPUT_FORMAT_PPROF,
	OUTPUT_FORMAT_FIREFOX,
	OUTPUT_FORMAT_SELF_PROFILING,
	OUTPUT_FORMAT_JSON,
	OUTPUT_FORMAT_SUMMARY,
	OUTPUT_FORMAT_HTML,
	OUTPUT_FORMATS_N,
};

struct output_format {
	const char *format; /* of --to */
	const char *suffix; /* with its dot */
	/*
	 * What the user does next: the file's name stands between the two.
	 * NULL: sentry-profctl view shows it. "": no single program does.
	 */
	const char *view_before, *view_after;
};

extern const struct output_format output_formats[OUTPUT_FORMATS_N];

/*
 * Says on stderr what the user can type in order to see the file at path, if a
 * single program shows it. profctl: sentry-profctl, as the user can type it.
 */
void output_format_print_viewer(const struct output_format *e, const char *profctl,
				const char *path);

/* The longest ending of path that is in the table; NULL: none. */
const struct output_format *output_format_of_path(const char *path);

#endif
