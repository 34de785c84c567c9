/*
 * The start of capture, unwind and ship: each is a child process that gets its tasks from
 * the broker over the socket MSG_FD.
 */
#ifndef DAEMON_COMMON_CHILD_H
#define DAEMON_COMMON_CHILD_H

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"

/*
 * The first call of main(). Waits for MSG_INIT and returns it; the struct is part of
 * *ret_init, which also has the descriptors. Sets up the log with name, a string literal.
 * Does not return if the argument is --version, whose text it prints, or if the broker did
 * not start this process.
 */
const struct msg_init *child_start(int argc, char **argv, const char *name,
				   struct ipc_message *ret_init);

/* Sends MSG_READY, once the process is set up. Exits if the broker is gone. */
void child_is_ready(void);

#endif
