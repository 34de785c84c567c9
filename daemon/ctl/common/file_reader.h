/*
 * Reads ELF files by a sentry-profd-unwind of sentry-profctl's own, so that they are
 * parsed in a sandbox. `convert --symbolize` asks for the names of addresses; `doctor` asks
 * whether a file has unwind information, symbols, debug information, a build-id and LeakSanitizer.
 *
 * The caller opens the files; unwind gets descriptors. Each function waits for unwind's
 * answer and checks its form: a file that exploits a fault of unwind can only make it give
 * wrong names or facts.
 */
#ifndef DAEMON_CTL_COMMON_FILE_READER_H
#define DAEMON_CTL_COMMON_FILE_READER_H

#include "daemon/ctl/common/spawn.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/buf.h"
#include "lib/base/util.h"

struct file_reader {
	struct helper helper; /* the sentry-profd-unwind */
	const void *page;     /* shared with unwind, which requires it; NULL: not started */
};

/*
 * Starts unwind. *reader has to be zeros. Returns 0 or -errno. Call file_reader_end() in
 * both cases.
 */
must_check int file_reader_start(struct file_reader *reader);

/* Kills unwind; *reader can be started again. Safe on a zero-initialised struct. */
void file_reader_end(struct file_reader *reader);

/*
 * Asks for the facts about the ELF file behind fd (struct msg_file_seen) and stores them in
 * *ret, also if the file is no ELF file: see ret->verdict. The caller keeps fd. Returns 0,
 * -EPIPE if unwind has exited (most often because of this file), -EPROTO if its answer is
 * invalid, or -errno. After an error only file_reader_end() may be called.
 */
must_check int file_reader_describe(struct file_reader *reader, int fd, struct msg_file_seen *ret);

/*
 * A callback that opens a debug file for unwind. request->kind is FILE_KIND_DEBUG, and
 * request->name a build-id in lower-case hex; or it is FILE_KIND_DEBUG_LINK, and the name is
 * a single path component: file_reader.c has checked them (file_request_check). Returns 0 and
 * a descriptor, which file_reader_symbolize() closes. After -errno unwind continues without
 * this file.
 */
typedef int file_reader_find(void *ctx, const struct msg_file_request *request, int *ret_fd);

/*
 * Asks for the names of the addresses in m, of the file behind fd. unwind may ask for
 * debug files meanwhile: find, which must not be NULL, opens them. If *ret_verdict is one with
 * an answer (msg_symbolized_has_answer), the answer is stored in ret_answer, which the caller
 * passes empty; symbolized_next() parses and checks it. The caller keeps fd. Errors are those of
 * file_reader_describe().
 */
must_check int file_reader_symbolize(struct file_reader *reader, const struct msg_symbolize *m,
				     int fd, file_reader_find *find, void *ctx,
				     enum symbolize_verdict *ret_verdict, struct buf *ret_answer);

#endif
