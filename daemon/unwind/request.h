/*
 * Requests for files. unwind opens no file: it asks the broker for each file (MSG_FILE_REQUEST) and
 * waits for the answer, a descriptor (MSG_FILE_REPLY). The socket to the broker is MSG_FD
 * (daemon/msg/msg.h). Other messages of the broker that arrive during the wait are kept, in their
 * order, for request_next_message().
 *
 * The broker gives each image and debug file a number, which is the same at each request. While
 * unwind reads a file, the file's number is in the reading page, a page of memory shared with the
 * broker. So the broker knows at which file unwind died (daemon/broker/files/quarantine.h).
 *
 * If the broker has ended or breaks the protocol, or a message cannot be kept (memory is short, or
 * too many are kept), the functions that request a file exit this process.
 */
#ifndef DAEMON_UNWIND_REQUEST_H
#define DAEMON_UNWIND_REQUEST_H

#include <stdbool.h>

#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"

/*
 * Each function requests one file of a target and waits for the answer. target: the broker's number
 * of the target. start, end: the addresses of a mapping of the image.
 * - request_file(): a file of a kind that needs no range and no name, such as FILE_KIND_MAPS.
 * - request_image(): the file of the image itself.
 * - request_debug(): the debug file with this build-id, in hexadecimal digits.
 * - request_debug_link(): the debug file with this name, from the image's .gnu_debuglink section.
 *
 * Returns 0 and a descriptor that the caller closes, or the negative errno of the broker's answer.
 * Returns -ENOENT without asking if file_request_check() refuses the name or the range, which a
 * target may have chosen.
 */
must_check int request_file(enum file_kind kind, uint32_t target, int *ret_fd);
must_check int request_image(uint32_t target, uint64_t start, uint64_t end, int *ret_fd);
must_check int request_debug(uint32_t target, const char *build_id, int *ret_fd);
must_check int request_debug_link(uint32_t target, uint64_t start, uint64_t end, const char *name,
				  int *ret_fd);

/*
 * Writes the next message of the broker to *ret: the oldest kept one. If none is kept, waits for a
 * message. Returns 1; 0 if the broker has ended; or the error of ipc_recv(). The caller owns the
 * descriptors of the message.
 */
must_check int request_next_message(struct ipc_message *ret);

/*
 * Returns true if a message is kept. Before poll(2) call request_next_message() until this function
 * returns false, because poll(2) does not report kept messages: they have left the socket.
 */
bool request_has_message(void);

/*
 * Maps the reading page. Its descriptor came with MSG_INIT, and the caller closes it. Returns the
 * address of the page's number, for unwind_cache_options.reading. lib/unwind writes there the
 * number of the file that it reads, or 0 while it reads none. Exits the process if the page cannot
 * be mapped.
 */
uint32_t *request_map_reading_page(const struct ipc_message *init);

/*
 * Returns the broker's number of the file that the last successful request returned; 0: that file
 * has no number, or no request has been successful.
 */
uint32_t request_last_file_number(void);

#endif
