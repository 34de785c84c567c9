/*
 * Inspects an ELF file for a MSG_FILE_LOOK: which unwind information, symbols and debug information
 * it has, and whether it has LeakSanitizer. The broker (daemon/broker/children/leak_check.h) and
 * `sentry-profctl doctor` send the file as a descriptor. Reason: only the sandboxed unwind process
 * parses foreign files.
 */
#ifndef DAEMON_UNWIND_FILE_LOOK_H
#define DAEMON_UNWIND_FILE_LOOK_H

#include <stdint.h>

#include "lib/base/util.h"

struct msg_file_look;

/*
 * Inspects fd, which stays the caller's, and answers m with MSG_FILE_SEEN. A file that is damaged
 * or not ELF is no error: the answer says so. Returns 0, or an error of ipc_send().
 *
 * reading: the word that request_map_reading_page() returns. The function writes the file's number,
 * m->number, there during the inspection, then 0. If this process dies in between, its parent
 * process (the broker or sentry-profctl) knows at which file.
 */
must_check int file_look(int fd, const struct msg_file_look *m, uint32_t *reading);

#endif
