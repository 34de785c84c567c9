/*
 * What the three child processes have in common: how they start, and how they
 * take a message apart.
 */
#ifndef DAEMON_COMMON_CHILD_H
#define DAEMON_COMMON_CHILD_H

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"

/*
 * For main: prints the version for --version and exits; exits with one line if
 * the process was not started by the broker; waits for MSG_INIT and returns
 * it. *ret_init keeps its descriptors. name is a string literal.
 */
const struct msg_init *child_start(int argc, char **argv, const char *name,
				   struct ipc_message *ret_init);

/* Tells the broker that all is set up. Exits if the broker is gone. */
void child_is_ready(void);

#endif
