/*
 * The formats that sentry-profctl convert writes: their names, the suffixes of their files,
 * and the program that shows such a file. sentry-profd uses the table to tell from the name
 * in --output whether it means a file, and links no code that writes a format
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
	const char *format; /* the name for --to */
	const char *suffix; /* with its dot */
	/*
	 * What the user types or does to see a file: the file's name is between the two.
	 * NULL: sentry-profctl view shows the file. "": no single program does.
	 */
	const char *view_before, *view_after;
};

extern const struct output_format output_formats[OUTPUT_FORMATS_N];

/*
 * Prints on stderr what the user can type to see the file at path, if a single program
 * shows it. profctl: how the user can call sentry-profctl.
 */
void output_format_print_viewer(const struct output_format *e, const char *profctl,
				const char *path);

/* The format whose suffix path has, the longest suffix if there are several, or NULL. */
const struct output_format *output_format_of_path(const char *path);

#endif
