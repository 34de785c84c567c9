/*
 * Requests for files. unwind opens no file: it asks the broker for each (MSG_FILE_REQUEST)
 * and waits for the answer, a descriptor (MSG_FILE_REPLY). Messages of the broker that
 * arrive meanwhile are kept, in their order, for request_next_message().
 *
 * A broker that has ended, or that breaks the protocol, ends this process.
 */
#ifndef DAEMON_UNWIND_REQUEST_H
#define DAEMON_UNWIND_REQUEST_H

#include <stdbool.h>

#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"

/*
 * Each function asks for one file of a target and waits. Returns 0 and a
 * descriptor that the caller closes, or the negative errno of the broker's answer.
 * Returns -ENOENT without asking if file_request_check() refuses the name or the range: a
 * target may have chosen these.
 */
must_check int request_file(enum file_kind kind, uint32_t target, int *ret_fd);
must_check int request_image(uint32_t target, uint64_t start, uint64_t end, int *ret_fd);
must_check int request_debug(uint32_t target, const char *build_id, int *ret_fd);
must_check int request_debug_link(uint32_t target, uint64_t start, uint64_t end, const char *name,
				  int *ret_fd);

/*
 * Returns the next message of the broker, kept or received; waits for one.
 * Returns 1, 0 when the broker has ended, or an error of ipc_recv().
 */
must_check int request_next_message(struct ipc_message *ret);

/*
 * Returns true if a message has been kept. The caller takes it before it waits in
 * poll(2), which does not know of it.
 */
bool request_has_message(void);

/*
 * Maps the page that came with MSG_INIT, in which unwind writes the number of the
 * file that it is reading. Ends the process if there is none.
 */
uint32_t *request_page(const struct ipc_message *init);

/* Returns the number of the file that was answered last; 0: it has none. */
uint32_t request_number(void);

#endif
