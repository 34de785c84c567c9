/*
 * The log lines of a child. unwind and ship read what targets and servers wrote, so an attacker
 * may have taken over such a process. Therefore its stderr is a pipe to the broker, which logs
 * each line with the child's name before it, escaped, and at most LOG_RELAY_LINES a minute of each
 * program (daemon/common/log.h). A child that writes more waits in write(2).
 *
 * capture keeps the broker's stderr: capture interprets nothing that a target wrote, and must not
 * wait for the broker while a thread is stopped.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILD_LOG_H
#define DAEMON_BROKER_CHILDREN_CHILD_LOG_H

#include "daemon/broker/children/child.h"
#include "lib/base/util.h"

/*
 * Makes the pipe of a process that is about to be started. *ret_fd is the process's end, which the
 * caller closes after the start. Returns 0 or -errno.
 */
must_check int child_log_open(struct child *child, int *ret_fd);
/*
 * Logs what is left in the pipe, and closes it. Has no effect if there is no pipe. Call it when
 * the process has ended.
 */
void child_log_close(struct child *child);

#endif
