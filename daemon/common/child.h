/*
 * The start of capture, unwind and ship, which are child processes: main() calls child_start(),
 * then drops privileges and opens what the process needs, then calls child_send_ready(). A child
 * gets its tasks over the socket at descriptor MSG_FD from its parent: the broker, or
 * sentry-profctl for a helper of its own.
 */
#ifndef DAEMON_COMMON_CHILD_H
#define DAEMON_COMMON_CHILD_H

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"

/*
 * Call it first in main(). Sets up the log with name, a string literal, and waits for MSG_INIT.
 * Returns a pointer to that message, which is in *ret_init. The caller provides *ret_init and owns
 * the descriptors in it.
 *
 * library: the second line of --version, such as "libdw 0.188"; NULL: none.
 *
 * Exits with these statuses. In all cases but the first two, a line on stderr gives the reason:
 *
 *     0                    --version is the argument: prints the version to stdout
 *     1                    the parent has closed the socket
 *     1                    receiving failed
 *     2                    there are other arguments, or MSG_FD is no SOCK_SEQPACKET socket
 *     CHILD_OTHER_VERSION  the parent has another version of the messages (msg_number() in
 *                          daemon/msg/msg_io.h), or does not send MSG_INIT first. The broker does
 *                          not start this executable again
 */
#define CHILD_OTHER_VERSION 78
const struct msg_init *child_start(int argc, char **argv, const char *name, const char *library,
				   struct ipc_message *ret_init);

/*
 * Sends MSG_READY. Call it when the process has dropped its privileges and can take tasks. If the
 * message cannot be sent, exits with 1, after a line on stderr unless the parent has closed the
 * socket.
 */
void child_send_ready(void);

#endif
