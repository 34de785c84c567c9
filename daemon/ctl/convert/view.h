/*
 * The command `sentry-profctl view IN...`: shows profiles from files in the browser, as an
 * HTML page (proto/export/html/html.h). Needs no daemon and no privileges.
 */
#ifndef DAEMON_CTL_CONVERT_VIEW_H
#define DAEMON_CTL_CONVERT_VIEW_H

/*
 * Runs the command; argv[0] is its name. Prints the path of the page, then executes the browser in
 * place of this process. Returns only with --no-open, if no browser can be executed, or after an
 * error. Returns the exit status: EXIT_SUCCESS, EXIT_FAILURE after a line on stderr, or 2 for wrong
 * usage.
 */
int view_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char view_help[];

#endif
