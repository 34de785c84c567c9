/*
 * Finds out whether a process has LeakSanitizer (lib/unwind/elf/leak_runtime.h), which cannot work
 * in a traced process and would end it with an error. targets/leaks.h asks before capture attaches.
 *
 * A question goes through the files with code of the process: the program, and all that it has
 * mapped. The helper of files/ lists and opens them, the unwind process of the owner's key looks at
 * each in its sandbox (MSG_FILE_LOOK), and a cache keeps what it has found, by the key and the
 * identity of the file. If a file has LeakSanitizer, the helper reads the environment of the
 * process: detect_leaks=0 switches it off. The broker itself parses neither files nor environment.
 *
 * A process whose files are all in the cache costs one request to the helper. Each file that is not
 * in it costs another request, and a message to the unwind process and back.
 *
 * An unwind process that a target has taken over can give wrong answers, about processes of its own
 * key only: the cache is by key. So nothing is removed from the cache when the key of a process
 * changes. Answers for the new key come from the cache's entries of that key, or from the unwind
 * process of that key; those for the old key stay, since other processes have it, or the same one
 * has it again later. Entries of a key that no process has any more are replaced in time.
 *
 * How to ask about a process that a target's exec has made, while it is held: leak_check_process()
 * with is_new_program and a timeout of 1 s; at every turn leak_question_answer(), until that is not
 * LEAK_ANSWER_AWAITED; then leak_question_free(). At the exec stop only the program and the dynamic
 * linker are mapped. Questions are answered in the loop, so a turn follows at once.
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
 * Files in the cache. A host runs some hundred programs and libraries. A file has one of
 * LEAK_CHECK_PLACES places, by its hash; where all are taken, it replaces another file, which is
 * looked at again.
 */
#define LEAK_CHECK_CACHED_MAX 4096
#define LEAK_CHECK_PLACES     8

/* Questions that are worked on at a time; the others wait for their turn. */
#define LEAK_CHECK_ACTIVE_MAX 16

struct leak_question;

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

enum leak_answer {
	LEAK_ANSWER_AWAITED, /* no answer yet */
	LEAK_ANSWER_NO,	     /* no file with LeakSanitizer */
	LEAK_ANSWER_OFF,     /* LeakSanitizer, which its options switch off (detect_leaks=0) */
	LEAK_ANSWER_ASAN,    /* LeakSanitizer, as part of AddressSanitizer */
	LEAK_ANSWER_LSAN,    /* LeakSanitizer alone */
	/* The timeout is over, the process has ended, or memory is short. */
	LEAK_ANSWER_UNKNOWN,
	/* A file system does not answer: the helper was killed. */
	LEAK_ANSWER_HANGS,
};

/* Draws the key. The caller has set *lc to zeros. files and quarantine must outlive it. */
void leak_check_init(struct leak_check *lc, struct files *files, struct quarantine *quarantine);

/*
 * Asks about the process of *owner, which was read just now. pidfd refers to it, and u is the
 * unwind process of its owner; both must stay valid until leak_question_free(). is_new_program: the
 * process has just executed its program, so the libraries of LD_PRELOAD are not mapped yet, and
 * their names count. A file that cannot be opened, is no ELF file or is quarantined counts as
 * without. Returns 0 or -ENOMEM.
 */
must_check int leak_check_process(struct leak_check *lc, struct unwind *u,
				  const struct owner *owner, int pidfd, bool is_new_program,
				  uint64_t timeout_ns, struct leak_question **ret);
/*
 * Asks about a program that is to be executed with these options. fd is the file, which is
 * duplicated; -1: unknown, counts as without. Returns 0, -ENOMEM or an error of fcntl(2).
 */
must_check int leak_check_file(struct leak_check *lc, struct unwind *u, int fd,
			       const struct leak_options *options, uint64_t timeout_ns,
			       struct leak_question **ret);

/* Returns the answer so far. */
enum leak_answer leak_question_answer(const struct leak_question *q);

/* Cancels the question, if it has no answer yet, frees it and sets *q to NULL. *q may be NULL. */
void leak_question_free(struct leak_question **q);

/*
 * To be called at every turn, before files_check(): goes on with the questions whose turn it is. A
 * file that was sent to an unwind process which has ended is sent to its successor.
 */
void leak_check_turn(struct leak_check *lc);

/*
 * Handles MSG_FILE_SEEN of unwind process u. Returns 0, or -EPROTO if the message breaks a rule.
 */
must_check int leak_check_seen(struct leak_check *lc, const struct unwind *u,
			       const struct msg_file_seen *m);

#endif
