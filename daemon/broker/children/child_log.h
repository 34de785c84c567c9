/*
 * Relays the log lines of the children to the broker's log. unwind and ship parse data of targets
 * or servers, so an attacker may have taken over one of them; and only the broker can write to its
 * stderr without waiting for the reader (daemon/common/log_output.h). Therefore the stderr of each
 * process is a pipe to the broker. The broker escapes each line, puts the child's name before the
 * line, and logs at most LOG_RELAY_LINES lines a minute of each program (log_relay() in
 * daemon/common/log.h). When a line is suppressed, the broker stops reading the pipe for about a
 * second. An unwind or ship process that fills the pipe meanwhile blocks in write(2). capture does
 * not, since it may have a thread stopped: it loses lines, and counts them.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILD_LOG_H
#define DAEMON_BROKER_CHILDREN_CHILD_LOG_H

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * Makes the pipe for a process that is about to be started, and reads its lines from now on.
 * *ret_fd is the end of the pipe for the process's stderr; the caller closes it after the start.
 * Returns 0 or -errno.
 */
must_check int child_log_open(struct child *child, int *ret_fd);
/*
 * Logs the lines that are left in the pipe, and closes the pipe. Call this function when the
 * process has ended. Has no effect if the child has no pipe.
 */
void child_log_close(struct child *child);

#endif
