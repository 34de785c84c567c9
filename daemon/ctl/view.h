/*
 * sentry-profctl view IN...: profiles that were written to files, as a page in
 * the browser (proto/export/html.h). Works by itself, without privileges and
 * without a daemon.
 */
#ifndef DAEMON_CTL_VIEW_H
#define DAEMON_CTL_VIEW_H

/*
 * argv[0] is the command's name. Prints the page's path, and executes the
 * browser in place of this process. Returns only if no browser is found, or on a
 * fault: the exit status, EXIT_SUCCESS, EXIT_FAILURE with a line on stderr, or 2 for wrong
 * usage.
 */
int view_run(int argc, char **argv);

/* The lines of --help-all that are about it. */
extern const char view_help[];

#endif
