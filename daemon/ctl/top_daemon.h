/*
 * A sentry-profd of sentry-profctl top's own, for one process, where no daemon
 * runs. It has the caller's rights, sends nothing, and writes nothing: its
 * socket lies in a new directory of mode 0700, and it profiles only while
 * somebody is connected to watch. It ends with its target, with top_daemon_end,
 * and at the caller's death.
 */
#ifndef DAEMON_CTL_TOP_DAEMON_H
#define DAEMON_CTL_TOP_DAEMON_H

#include <limits.h>
#include <signal.h>
#include <stdint.h>

#include "daemon/ask.h"
#include "lib/base/util.h"

struct top_daemon {
	int32_t pid; /* 0: there is none */
	int log_fd;  /* a memfd: what it has written to stderr */
	char dir[PATH_MAX];
	char socket[PATH_MAX];
};

/*
 * Starts it and connects to it: the caller closes *ret before top_daemon_end,
 * which is due also after an error. *stop: set by a signal, ends the waiting
 * with -EINTR. Returns 0, or -errno after a line on stderr.
 */
must_check int top_daemon_start(struct top_daemon *d, int32_t target,
				const volatile sig_atomic_t *stop,
				struct ask *ret);

/* Ends it, waits for its end, and removes the directory. */
void top_daemon_end(struct top_daemon *d);

#endif
