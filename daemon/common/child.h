/*
 * The start of capture, unwind and ship: each is a child process that gets its tasks from its
 * parent, usually the broker, over the socket at descriptor MSG_FD.
 */
#ifndef DAEMON_COMMON_CHILD_H
#define DAEMON_COMMON_CHILD_H

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"

/*
 * The first call of main(). Sets up the log with name, a string literal, and waits for MSG_INIT.
 * Returns a pointer into *ret_init, which the caller provides. The caller owns the descriptors in
 * *ret_init.
 *
 * library: the second line of --version, such as "libdw 0.188"; NULL: none.
 *
 * In these cases the process exits. A line on stderr gives the reason for 2 and for
 * CHILD_OTHER_VERSION, and for 1 unless the parent has closed the socket:
 *
 *     0                    --version; prints the version to stdout
 *     1                    the parent has closed the socket, or receiving failed
 *     2                    other arguments, or MSG_FD is no socket of a parent
 *     CHILD_OTHER_VERSION  the parent has another msg_number(), or does not send MSG_INIT first
 */
#define CHILD_OTHER_VERSION 78
const struct msg_init *child_start(int argc, char **argv, const char *name, const char *library,
				   struct ipc_message *ret_init);

/*
 * Sends MSG_READY. Call it when the process is set up. If the message cannot be sent, exits with 1,
 * after a line on stderr unless the parent has closed the socket.
 */
void child_send_ready(void);

#endif
