/*
 * MSG_FILE_LOOK: inspects an ELF file: whether it has LeakSanitizer, and which unwind
 * information, symbols and debug information it has. The broker (daemon/broker/children/
 * leak_check.h) and `sentry-profctl doctor` send the file as a descriptor, so that they do not
 * parse a foreign file outside of the sandbox.
 */
#ifndef DAEMON_UNWIND_FILE_LOOK_H
#define DAEMON_UNWIND_FILE_LOOK_H

#include <stdint.h>

#include "lib/base/util.h"

struct msg_file_look;

/*
 * Inspects fd, which stays the caller's, and answers m with MSG_FILE_SEEN. Meanwhile *reading, in
 * the page of MSG_INIT, is m->number; afterwards 0. Returns 0 or -errno.
 */
must_check int file_look(int fd, const struct msg_file_look *m, uint32_t *reading);

#endif
