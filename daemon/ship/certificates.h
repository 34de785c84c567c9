/*
 * The files that ship verifies the server with, and shows it: read from
 * descriptors that the broker has opened with its rights, before the sandbox.
 */
#ifndef DAEMON_SHIP_CERTIFICATES_H
#define DAEMON_SHIP_CERTIFICATES_H

#include "daemon/msg/msg.h"
#include "lib/base/buf.h"
#include "lib/ship/transport.h"

struct certificates {
	struct buf authorities;
	struct buf client;
	struct buf key;
};

/*
 * Reads what came with MSG_INIT: fds by enum init_file, -1 where there is none.
 * Returns 0, or -errno after a line in the log that names the key of the
 * configuration; certificates_fini is due in either case.
 */
must_check int certificates_read(struct certificates *c, const int fds[INIT_FILE_N]);
/*
 * What is wrong with one of them, for the log: cut off, or none at all, as of a
 * file that is being renewed. NULL: nothing.
 */
const char *certificates_problem(const struct certificates *c);
/* The key's memory is wiped. */
void certificates_fini(struct certificates *c);

/* Into the options, which are valid as long as c is. */
void certificates_use(const struct certificates *c, struct transport_options *ret);

#endif
