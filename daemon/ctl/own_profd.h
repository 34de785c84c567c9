/*
 * A sentry-profd that sentry-profctl starts for itself: with its user's rights, as its
 * child, which ends with it. What that process logs is kept, to be shown where it is
 * the reason of a failure.
 */
#ifndef DAEMON_CTL_OWN_PROFD_H
#define DAEMON_CTL_OWN_PROFD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct own_profd {
	int32_t pid; /* 0: none was started, or its end was waited for */
	int log_fd;  /* a memfd: its stderr; -1: there is none */
};

/*
 * Starts it with these arguments, the name first and NULL at the end. out_fd becomes
 * its stdout; -1: /dev/null. prepare, unless NULL, is called in the child before
 * execve(2); false: the child ends. Returns 0 or -errno; own_profd_end is due in either
 * case.
 */
must_check int own_profd_start(struct own_profd *p, char *const *argv, int out_fd,
			       bool (*prepare)(const void *ctx), const void *ctx);

/* Writes what it has logged to stderr. */
void own_profd_show_log(const struct own_profd *p);

/* Waits for its end, and closes the log. */
void own_profd_end(struct own_profd *p);

#endif
