/*
 * A helper: a sentry-profd-ship or sentry-profd-unwind that exchanges a few messages with
 * sentry-profctl, which takes the broker's part (daemon/msg/msg.h). `send` starts a ship,
 * file_reader.h an unwind. helper_start_*() and helper_receive() block until the helper sends a
 * message or exits, without a time limit.
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
	int fd;	     /* the socket to the helper, blocking, for ipc_send(); -1: none */
};

/*
 * Starts a sentry-profd-ship and waits until it is ready. Bit k of mask says that ship gets the
 * file k of enum init_file (daemon/msg/msg.h). files has the n descriptors of these files, in the
 * order of their bits, lowest bit first. The caller keeps the descriptors. If sentry-profctl runs
 * as root, the helper runs under the account of ship (daemon/config/accounts.h). Returns 0 or
 * -errno. The caller calls helper_kill() in both cases.
 */
must_check int helper_start_ship(struct helper *h, const int *files, size_t n, uint32_t mask);

/*
 * Starts a sentry-profd-unwind and waits until it is ready. If sentry-profctl runs as root, the
 * helper runs under the account of unwind. page_fd: a page for one uint32_t, made by page_new()
 * (daemon/msg/page.h). unwind does not start without the page, in which it writes for the broker
 * which file it reads (MSG_INIT in daemon/msg/msg.h). sentry-profctl does not need to read the
 * page. The caller keeps page_fd. Returns 0 or -errno. The caller calls helper_kill() in both
 * cases.
 */
must_check int helper_start_unwind(struct helper *h, int page_fd);

/*
 * Waits for the next message, which has to be of this type, and stores the message in *m. Only for
 * messages without descriptors: the function closes all descriptors of the message. Returns 0;
 * -EPIPE if the helper has exited; -EPROTO if the message is of another type or size; or another
 * -errno of the socket.
 */
must_check int helper_receive(const struct helper *h, enum msg_type type, struct ipc_message *m);

/*
 * Kills the helper and closes the socket. Call it only after helper_start_*(): in a struct of zeros
 * it would close descriptor 0. Does nothing in a second call.
 */
void helper_kill(struct helper *h);

#endif
