/*
 * The sentry-profd-unwind that sentry-profctl starts to read ELF files, in its
 * sandbox (daemon/unwind/symbolize.h). It gets files as descriptors, and its answers
 * are checked: one that was taken over by a file can only give wrong names.
 */
#ifndef DAEMON_CTL_OWN_UNWIND_H
#define DAEMON_CTL_OWN_UNWIND_H

#include "daemon/ctl/own_child.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"

struct own_unwind {
	struct own_child child;
	const void *page;
};

/* For a struct that starts as zeros; own_unwind_end is due in both cases. */
must_check int own_unwind_start(struct own_unwind *u);
void own_unwind_end(struct own_unwind *u); /* takes zeros */

/*
 * What the ELF file behind fd has. Returns 0, -EPIPE if unwind has ended, at
 * this file as a rule, -EPROTO if it broke a rule, or -errno; after an error
 * only own_unwind_end may follow.
 */
must_check int own_unwind_look(struct own_unwind *u, int fd, struct msg_file_seen *ret);

/*
 * Opens the debug file that a checked request, FILE_KIND_DEBUG or FILE_KIND_DEBUG_LINK, is
 * for. Returns 0 and a descriptor, which is closed then, or a negative errno.
 */
typedef int own_unwind_find(void *ctx, const struct msg_file_request *request, int *ret_fd);

/*
 * Asks m of the file behind fd. If *ret_verdict has an answer
 * (daemon/msg/symbolized.h) it is added to the empty ret_answer, not checked yet.
 * Returns 0, -EPIPE if unwind has ended, -EPROTO if it broke a rule, or -errno;
 * after an error only own_unwind_end may follow.
 */
must_check int own_unwind_ask(struct own_unwind *u, const struct msg_symbolize *m, int fd,
			      own_unwind_find *find, void *ctx, enum symbolize_verdict *ret_verdict,
			      struct buf *ret_answer);

#endif
