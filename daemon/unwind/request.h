/*
 * The unwind process asks the broker for files (MSG_FILE_REQUEST, MSG_FILE_REPLY) and waits
 * for each answer. Other messages that come meanwhile are kept in order for
 * request_next_message.
 */
#ifndef DAEMON_UNWIND_REQUEST_H
#define DAEMON_UNWIND_REQUEST_H

#include <stdbool.h>

#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"

/*
 * Each returns 0 and a descriptor that the caller closes, or the negative errno
 * of the answer; -ENOENT, and asks nothing, where file_request_check() refuses the name
 * or the range, which may be a stranger's. A broker that is gone or breaks the
 * rules ends the process.
 */
must_check int request_file(enum file_kind kind, uint32_t target, int *ret_fd);
must_check int request_image(uint32_t target, uint64_t start, uint64_t end, int *ret_fd);
must_check int request_debug(uint32_t target, const char *build_id, int *ret_fd);
must_check int request_debug_link(uint32_t target, uint64_t start, uint64_t end, const char *name,
				  int *ret_fd);

/*
 * The next message of the broker: one that was kept, or received now (waits).
 * Returns 1, or 0 when the broker is gone. As ipc_recv otherwise.
 */
must_check int request_next_message(struct ipc_message *ret);

/*
 * The page where the number of the file is that is being read, which comes with
 * MSG_INIT. Without one the process ends.
 */
uint32_t *request_page(const struct ipc_message *init);
/* Of the file that was answered last; 0: it has none. */
uint32_t request_number(void);

/* True if a message was kept: it has to be taken before waiting in poll. */
bool request_has_message(void);

#endif
