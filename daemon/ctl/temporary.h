/* Where sentry-profctl puts what it removes again, or what is looked at once.
 */
#ifndef DAEMON_CTL_TEMPORARY_H
#define DAEMON_CTL_TEMPORARY_H

/*
 * The directory of $XDG_RUNTIME_DIR, in memory and emptied at the logout, else
 * of $TMPDIR, else /tmp.
 */
const char *temporary_directory(void);

#endif
