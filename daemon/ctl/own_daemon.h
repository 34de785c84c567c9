/*
 * The daemon for a command that reads a recording of one process
 * (daemon/ctl/recording.h): the one that runs, or, where none runs, a
 * sentry-profd of the command's own. That has the caller's rights, sends
 * nothing, and writes nothing: its socket lies in a new directory of mode 0700,
 * and it profiles only while the command is connected. It ends with its target,
 * with own_daemon_end, and at the caller's death.
 */
#ifndef DAEMON_CTL_OWN_DAEMON_H
#define DAEMON_CTL_OWN_DAEMON_H

#include <limits.h>
#include <signal.h>
#include <stdint.h>

#include "daemon/common/control_client.h"
#include "daemon/ctl/own_profd.h"
#include "lib/base/util.h"

struct own_daemon {
	struct own_profd profd; /* its pid is 0: no daemon was started */
	char dir[PATH_MAX];
	char socket[PATH_MAX];
};

/*
 * Connects to the daemon that runs, or to one that it starts for process
 * target. socket: as the user has named it; NULL: not. None is started where a
 * socket is named, nor for target 0. The caller closes *ret before
 * own_daemon_end, which is due also after an error. *stop: set by a signal,
 * ends the waiting with -EINTR. Returns 0, or -errno after a line on stderr.
 */
must_check int own_daemon_find(struct own_daemon *d, const char *socket, int32_t target,
			       const volatile sig_atomic_t *stop, struct control_client *ret);

/*
 * Ends the daemon that was started, waits for its end, and removes the
 * directory.
 */
void own_daemon_end(struct own_daemon *d);

#endif
