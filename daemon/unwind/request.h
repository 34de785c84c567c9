/*
 * Requests for files. unwind opens no file: it asks the broker for each (MSG_FILE_REQUEST)
 * and waits for the answer, a descriptor (MSG_FILE_REPLY). Messages of the broker that
 * arrive meanwhile are kept, in their order, for request_next_message().
 *
 * The broker gives each image and debug file a number, which is the same at each request.
 * unwind shows in a page of shared memory the number of the file that it reads, so that
 * the broker knows at which file unwind died (daemon/broker/files/quarantine.h).
 *
 * If the broker has ended, or breaks the protocol, the functions that request a file exit
 * this process. request_next_message() returns a result instead.
 */
#ifndef DAEMON_UNWIND_REQUEST_H
#define DAEMON_UNWIND_REQUEST_H

#include <stdbool.h>

#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"

/*
 * Each function asks for one file of a target (the broker's number) and waits. enum file_kind
 * says which file it is; request_file() takes a kind that needs no range and no name, such as
 * FILE_KIND_MAPS. Returns 0 and a descriptor that the caller closes, or the negative errno of
 * the broker's answer. Returns -ENOENT without asking if file_request_check() refuses the name
 * or the range, which a target may have chosen.
 */
must_check int request_file(enum file_kind kind, uint32_t target, int *ret_fd);
must_check int request_image(uint32_t target, uint64_t start, uint64_t end, int *ret_fd);
must_check int request_debug(uint32_t target, const char *build_id, int *ret_fd);
must_check int request_debug_link(uint32_t target, uint64_t start, uint64_t end, const char *name,
				  int *ret_fd);

/*
 * Returns the next message of the broker in *ret: a kept one or, if there is none, one that
 * it waits for. Returns 1, 0 if the broker has ended, or the error of ipc_recv(). The caller
 * owns the descriptors of the message.
 */
must_check int request_next_message(struct ipc_message *ret);

/*
 * Returns true if a message is kept. Call request_next_message() until this is false, and
 * only then poll(2): the socket of a kept message is not readable any more.
 */
bool request_has_message(void);

/*
 * Maps the page that came with MSG_INIT. The process writes to the result the number of the
 * file that it reads (unwind_cache_options.reading). Exits the process if the message has no
 * page.
 */
uint32_t *request_map_reading_page(const struct ipc_message *init);

/*
 * Returns the broker's number of the file that the last successful request returned; 0 if
 * that file has no number.
 */
uint32_t request_last_file_number(void);

#endif
