/*
 * The formats that sentry-profctl convert writes: their names, the suffixes of their files,
 * and the program that shows such a file.
 *
 * sentry-profd uses the table to decide whether the argument of --output names a file (it has
 * one of the suffixes) or a directory. The code that writes the formats is in sentry-profctl
 * only (daemon/ctl/convert/formats.h).
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
	OUTPUT_FORMAT_SVG,
	OUTPUT_FORMATS_N,
};

struct output_format {
	const char *name;   /* the argument of --to */
	const char *suffix; /* with its dot */
	/*
	 * The texts before and after the path of a file in the command or instruction that shows
	 * the file: "load " PATH " at https://...". view_before is NULL if `sentry-profctl view`
	 * shows the file, and "" if no single program does. In both cases view_after is not used.
	 */
	const char *view_before, *view_after;
};

/* Indexed by enum output_format_id. */
extern const struct output_format output_formats[OUTPUT_FORMATS_N];

/*
 * Prints to stderr the command or instruction by which the user can see the file at path. Prints
 * nothing if no single program shows files of this format. profctl: the name or path by which the
 * user can start sentry-profctl. path and profctl have less than PATH_MAX bytes; the function
 * quotes them for a shell where that is needed.
 */
void output_format_print_viewer(const struct output_format *format, const char *profctl,
				const char *path);

/*
 * Returns the format whose suffix path ends with, or NULL. If several match, the longest suffix
 * counts (.firefox.json before .json).
 */
const struct output_format *output_format_of_path(const char *path);

#endif
