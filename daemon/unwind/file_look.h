/*
 * MSG_FILE_LOOK: inspects an ELF file for `sentry-profctl doctor`: which unwind
 * information, symbols and debug information it has. doctor sends the file as a
 * descriptor, so that it does not parse a foreign file outside of the sandbox.
 */
#ifndef DAEMON_UNWIND_FILE_LOOK_H
#define DAEMON_UNWIND_FILE_LOOK_H

#include "lib/base/util.h"

/* Inspects fd, which stays the caller's, and sends MSG_FILE_SEEN. Returns 0 or -errno. */
must_check int file_look(int fd);

#endif
