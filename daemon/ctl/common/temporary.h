/*
 * The directory for temporary files of sentry-profctl: the socket of a private daemon, and
 * the page that `view` opens.
 */
#ifndef DAEMON_CTL_COMMON_TEMPORARY_H
#define DAEMON_CTL_COMMON_TEMPORARY_H

/*
 * Returns $XDG_RUNTIME_DIR (in memory, removed at logout), else $TMPDIR, else "/tmp". A
 * variable counts if it is an absolute path that the user may write to. The string is
 * static or of the environment; the caller does not free it.
 */
const char *temporary_directory(void);

#endif
