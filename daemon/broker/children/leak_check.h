/*
 * Finds out whether a process has LeakSanitizer (lib/unwind/elf/leak_runtime.h). LeakSanitizer
 * cannot work in a traced process, and would end the process with an error.
 * targets/leak_sanitizer.h asks before capture attaches.
 *
 * The answer is found in these steps. The broker itself parses neither files nor environment:
 * - A helper (files/files.h) lists all files from which the process has mapped code, the program
 *   included, and opens each file that is not in the cache (see below).
 * - The unwind process of the owner's key (daemon/process/owner.h) looks at each file in its
 *   sandbox (MSG_FILE_LOOK). A cache keeps the result, by that key and the identity of the file.
 * - If a file has LeakSanitizer, the helper reads the environment of the process: detect_leaks=0
 *   switches LeakSanitizer off. After an exec (is_new_program) the helper reads it in any case.
 *
 * The list and the environment cost one request to the helper each. Each file that is not in the
 * cache costs another request, and a message to the unwind process and back.
 *
 * An unwind process that a target has taken over can give wrong answers. Wrong answers concern only
 * processes of the same key, because each cache entry belongs to a key.
 *
 * Example: targets/held_execs.h asks about a process that capture holds at the stop of an exec,
 * when only the program and the dynamic linker are mapped. It calls, in this order:
 * - leak_check_process() with is_new_program and the timeout HELD_EXEC_ANSWER_NS;
 * - leak_question_answer() at every turn, until it returns another value than LEAK_ANSWER_AWAITED.
 *   An answer arrives as an event of the loop, so a turn follows at once;
 * - leak_question_free().
 */
#ifndef DAEMON_BROKER_CHILDREN_LEAK_CHECK_H
#define DAEMON_BROKER_CHILDREN_LEAK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/files/files.h"
#include "daemon/broker/files/quarantine.h"
#include "daemon/process/leak_options.h"
#include "lib/base/file_identity.h"
#include "lib/base/siphash.h"
#include "lib/base/util.h"

/*
 * The number of files in the cache: a host runs some hundred programs and libraries. The hash of a
 * file selects LEAK_CHECK_PLACES places of the cache. If all of them are taken, the new file
 * replaces one of the files there. A replaced file is looked at again when it is needed.
 */
#define LEAK_CHECK_CACHED_MAX 4096
#define LEAK_CHECK_PLACES     8

/* How many questions are worked on at a time. These are the oldest ones; the others wait. */
#define LEAK_CHECK_ACTIVE_MAX 16

struct leak_question;

/* An entry of the cache. */
struct leak_check_file {
	bool is_set;
	struct owner_key owner;
	struct file_identity identity;
	enum file_leaks leaks;
};

struct leak_check {
	struct files *files;
	struct quarantine *quarantine;
	uint8_t key[SIPHASH_KEY_SIZE]; /* of the places in the cache */
	struct leak_check_file cache[LEAK_CHECK_CACHED_MAX];
	uint32_t replaced;	     /* files that were replaced in the cache */
	struct leak_question *first; /* the oldest */
	uint32_t last_look;	     /* the id of the newest MSG_FILE_LOOK */
};

/* The answer about a process. */
enum leak_answer {
	LEAK_ANSWER_AWAITED, /* no answer yet */
	LEAK_ANSWER_NO,	     /* no LeakSanitizer */
	LEAK_ANSWER_OFF,     /* it has LeakSanitizer, but options switch it off (detect_leaks=0) */
	LEAK_ANSWER_ASAN,    /* it has LeakSanitizer, as part of AddressSanitizer */
	LEAK_ANSWER_LSAN,    /* it has LeakSanitizer alone */
	/* The timeout is over, the process has ended, or the helper has failed. */
	LEAK_ANSWER_UNKNOWN,
	/* A file system does not answer: the helper was killed. */
	LEAK_ANSWER_HANGS,
};

/*
 * Sets the random key of the cache. The caller has set *lc to zeros. files and quarantine must
 * outlive *lc. Aborts if the kernel has no random numbers.
 */
void leak_check_init(struct leak_check *lc, struct files *files, struct quarantine *quarantine);

/*
 * Asks about the process of *owner, which owner_read() has read just now. pidfd refers to the
 * process, and u is the unwind process of its owner; both must stay valid until
 * leak_question_free(). is_new_program: the process has just executed its program, and has not
 * mapped the libraries of LD_PRELOAD yet. Then the names of these libraries show whether one of
 * them is LeakSanitizer. A file that cannot be opened, is no ELF file or is quarantined counts as a
 * file without LeakSanitizer. If there is no answer timeout_ns after this call, the answer is
 * LEAK_ANSWER_UNKNOWN. The caller frees *ret with leak_question_free(). Returns 0 or -ENOMEM.
 */
must_check int leak_check_process(struct leak_check *lc, struct unwind *u,
				  const struct owner *owner, int pidfd, bool is_new_program,
				  uint64_t timeout_ns, struct leak_question **ret);
/*
 * Asks about a program before it is executed: that of `sentry-profd -- COMMAND`. fd is the file of
 * the program, and stays the caller's. If fd is -1, the file is unknown and counts as one without
 * LeakSanitizer; the libraries of LD_PRELOAD still decide. options: what the
 * environment of the program says, the libraries of LD_PRELOAD included. u, timeout_ns and ret are
 * as for leak_check_process(). Returns 0, -ENOMEM or an error of fcntl(2).
 */
must_check int leak_check_file(struct leak_check *lc, struct unwind *u, int fd,
			       const struct leak_options *options, uint64_t timeout_ns,
			       struct leak_question **ret);

/* Returns the answer so far. */
enum leak_answer leak_question_answer(const struct leak_question *q);

/* Cancels the question, if it has no answer yet, frees it and sets *q to NULL. *q may be NULL. */
void leak_question_free(struct leak_question **q);

/*
 * To be called at every turn: goes on with the LEAK_CHECK_ACTIVE_MAX oldest questions. Call it
 * before files_check(), which passes the requests of the questions to the helper. If an unwind
 * process has ended before it answered, the next unwind process of the key gets the file.
 */
void leak_check_turn(struct leak_check *lc);

/*
 * Handles MSG_FILE_SEEN, the answer of unwind process u to MSG_FILE_LOOK. Ignores the answer if its
 * question was freed. Returns 0, or -EPROTO if the message breaks a rule.
 */
must_check int leak_check_seen(struct leak_check *lc, const struct unwind *u,
			       const struct msg_file_seen *m);

#endif
