/*
 * A helper process of sentry-profctl: one sentry-profd-ship or one
 * sentry-profd-unwind, started in the same way as the broker starts it, for a few
 * messages. `send` starts a ship, file_reader.h an unwind.
 *
 * The calls block until the helper answers.
 */
#ifndef DAEMON_CTL_COMMON_HELPER_H
#define DAEMON_CTL_COMMON_HELPER_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/util.h"

struct helper {
	int32_t pid; /* 0: no process */
	int fd;	     /* the socket to the helper, blocking; -1: none */
};

/*
 * Starts a sentry-profd-ship and waits until it is ready. files are n descriptors, one
 * for each bit that is set in mask (struct msg_init), lowest bit first; the caller
 * keeps them. If the caller is root, the helper runs under the account of ship. Returns
 * 0 or -errno. Call helper_kill() in both cases.
 */
must_check int helper_start_ship(struct helper *h, const int *files, size_t n, uint32_t mask);

/*
 * Starts a sentry-profd-unwind in the same way; as root under the account of unwind. page_fd is
 * a page from page_new() for one uint32_t, in which unwind writes the number of the file that
 * it is reading (struct msg_init); the caller keeps it.
 */
must_check int helper_start_unwind(struct helper *h, int page_fd);

/*
 * Waits for the next message, which has to be of this type, and stores it in *m. Closes
 * the descriptors that came with it. Returns 0, -EPIPE if the helper has exited, -EPROTO
 * if the message is of another type or size, or -errno.
 */
must_check int helper_receive(const struct helper *h, enum msg_type type, struct ipc_message *m);

/* Kills the helper and closes the socket. Does nothing if there is no process. */
void helper_kill(struct helper *h);

#endif
