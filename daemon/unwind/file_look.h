/*
 * MSG_FILE_LOOK: sentry-profd-unwind says what an ELF file that it was handed
 * has, so that sentry-profctl doctor reads none itself.
 */
#ifndef DAEMON_UNWIND_FILE_LOOK_H
#define DAEMON_UNWIND_FILE_LOOK_H

#include "lib/base/util.h"

/* Answers by MSG_FILE_SEEN. fd stays the caller's. Returns 0 or -errno. */
must_check int file_look(int fd);

#endif
