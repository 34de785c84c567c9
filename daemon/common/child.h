/*
 * The start of capture, unwind and ship: each is a child process that gets its tasks from
 * the broker over the socket MSG_FD.
 */
#ifndef DAEMON_COMMON_CHILD_H
#define DAEMON_COMMON_CHILD_H

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"

/*
 * The first call of main(). Sets up the log with name, a string literal, and waits for
 * MSG_INIT. The returned pointer points into *ret_init and is valid as long as that is. The
 * caller owns the descriptors in *ret_init.
 *
 * library: the second line of --version, such as "libdw 0.188"; NULL: none.
 *
 * Exits instead of returning: with 0 for --version, after printing the version; with 2 if the
 * broker did not start this process; with CHILD_OTHER_VERSION if the broker is of another version
 * (msg_number()) or sends another message; with 1 if it closes the socket, or if the message cannot
 * be received. A line on stderr gives the reason, except if the socket was closed.
 */
#define CHILD_OTHER_VERSION 78
const struct msg_init *child_start(int argc, char **argv, const char *name, const char *library,
				   struct ipc_message *ret_init);

/*
 * Sends MSG_READY. Call it when the process is set up. Exits with 1 if the broker is gone, or after
 * a line on stderr if the message cannot be sent.
 */
void child_send_ready(void);

#endif
