/*
 * The formats of sentry-profctl convert by name, by the ending of a file's
 * name, and by what shows the file. sentry-profd knows by it which names of
 * --output are files, and links no code that writes a format
 * (daemon/ctl/formats.h).
 */
#ifndef DAEMON_COMMON_ENDING_H
#define DAEMON_COMMON_ENDING_H

enum ending_id {
	ENDING_FOLDED,
	ENDING_SPEEDSCOPE,
	ENDING_PPROF,
	ENDING_FIREFOX,
	ENDING_SELF_PROFILING,
	ENDING_JSON,
	ENDING_SUMMARY,
	ENDING_HTML,
	ENDING_N,
};

struct ending {
	const char *format; /* of --to */
	const char *ending; /* with its dot */
	/*
	 * What the user does next: the file's name stands between the two.
	 * NULL: sentry-profctl view shows it. "": no single program does.
	 */
	const char *view_before, *view_after;
};

extern const struct ending endings[ENDING_N];

/*
 * Says on stderr what the user can type in order to see the file at path, if a
 * single program shows it. profctl: sentry-profctl, as the user can type it.
 */
void ending_tell_next(const struct ending *e, const char *profctl, const char *path);

/* The longest ending of path that is in the table; NULL: none. */
const struct ending *ending_of(const char *path);

#endif
