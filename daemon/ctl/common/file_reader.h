/*
 * Reads ELF files for sentry-profctl: starts a sentry-profd-unwind, which parses the files in its
 * sandbox. `convert --symbolize` asks unwind for the names of addresses. `doctor` asks whether a
 * file has unwind information, symbols, debug information, a build-id and LeakSanitizer.
 *
 * The caller opens the files and passes descriptors. Each function waits for unwind's answer and
 * checks the form of the answer. So a malicious file that takes over unwind can cause wrong names
 * or facts in the output, and nothing else.
 */
#ifndef DAEMON_CTL_COMMON_FILE_READER_H
#define DAEMON_CTL_COMMON_FILE_READER_H

#include "daemon/ctl/common/helper.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"

struct file_reader {
	struct helper helper; /* the sentry-profd-unwind */
	const void *page;     /* the page of helper_start_unwind(); NULL: not started */
};

/*
 * Starts unwind. *reader is zeros, or file_reader_end() was called for it. Returns 0 or -errno. The
 * caller calls file_reader_end() in both cases.
 */
must_check int file_reader_start(struct file_reader *reader);

/* Kills unwind. Safe on a zero-initialised struct, and a second time. */
void file_reader_end(struct file_reader *reader);

/*
 * Asks for the facts about the file behind fd and stores them in *ret. ret->verdict says whether
 * the file is an ELF file that unwind can read. The caller keeps fd. Returns 0; -EPIPE if unwind
 * has exited, usually because of this file; -EPROTO if unwind's answer is invalid; or another
 * -errno of the socket. After an error only file_reader_end() may be called.
 */
must_check int file_reader_describe(struct file_reader *reader, int fd, struct msg_file_seen *ret);

/*
 * A callback that opens a debug file for unwind. request->kind is one of two, and request->name is
 * valid (daemon/msg/file_request.h):
 * - FILE_KIND_DEBUG: the name is a build-id in lower-case hex;
 * - FILE_KIND_DEBUG_LINK: the name is a file name, without a slash.
 * Returns 0 and a descriptor, which file_reader_symbolize() closes; or -errno, after which unwind
 * goes on without this file.
 */
typedef int file_reader_find(void *ctx, const struct msg_file_request *request, int *ret_fd);

/*
 * Asks for the names of the addresses in m, which are addresses of the file behind fd. The caller
 * has set all members of m, also m->h = MSG_HEADER(MSG_SYMBOLIZE), and keeps fd. If unwind needs a
 * debug file to answer, the function calls find(ctx, ...), which must not be NULL. More than 16
 * such requests are an error: -EPROTO.
 *
 * Stores unwind's verdict in *ret_verdict. If msg_symbolized_has_answer() returns true for this
 * verdict, appends the answer to ret_answer, an empty buffer of at most SYMBOLIZED_BYTES_MAX bytes.
 * The caller parses and checks the answer by symbolized_next(). Returns 0, an error of
 * file_reader_describe(), or an error of buf_read_fd(). After an error only file_reader_end() may
 * be called.
 */
must_check int file_reader_symbolize(struct file_reader *reader, const struct msg_symbolize *m,
				     int fd, file_reader_find *find, void *ctx,
				     enum symbolize_verdict *ret_verdict, struct buf *ret_answer);

#endif
