/*
 * Quarantine: files at which unwind processes died are not sent to them any more.
 *
 * With each program, library or debug file the broker sends the unwind process a number: a hash
 * of the file's identity under a key of this broker. The process writes the number of the file
 * that it is reading into a page that it shares with the broker (quarantine_page). When the
 * process dies by its own fault, the broker counts a death for that number. After
 * QUARANTINE_DEATHS the file is quarantined.
 *
 * Deaths are counted per user, because a target that has taken over its unwind process can write
 * any number into the page. It can get files quarantined that the process was sent, for targets
 * of its own user, and no others.
 */
#ifndef DAEMON_BROKER_FILES_QUARANTINE_H
#define DAEMON_BROKER_FILES_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/files/file_shown.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/siphash.h"
#include "lib/base/util.h"

/* One or two deaths may have another cause. */
#define QUARANTINE_DEATHS 3

/*
 * Limits of files with at least one death. Beyond them the oldest entry is replaced: of the same
 * user, if it has QUARANTINE_OF_USER; of all users, if there are QUARANTINE_MAX.
 */
#define QUARANTINE_OF_USER 32
#define QUARANTINE_MAX	   256

struct quarantine_file {
	uint32_t uid;
	uint32_t number;	/* of the file */
	uint32_t deaths;	/* 0: the entry is free */
	uint64_t at;		/* the number of its last death, among deaths of all files */
	struct file_shown file; /* known if it was sent again after a death */
};

struct quarantine_table {
	struct quarantine_file v[QUARANTINE_MAX];
	uint64_t deaths; /* of all files */
};

struct quarantine {
	uint8_t key[SIPHASH_KEY_SIZE];	/* of the numbers */
	struct quarantine_table *table; /* NULL: no death so far */
	uint64_t refused; /* requests of unwind that broke the rules of file_request.h */
};

/* Draws the key; aborts if the kernel has no random numbers. *q is zero-initialised. */
void quarantine_init(struct quarantine *q);

/*
 * Makes the page of an unwind process that is about to start. Replaces *page, which is unmapped
 * unless it is NULL. *ret_fd is the memfd of the page, for the process; it is the caller's.
 * Returns 0 or -errno.
 */
must_check int quarantine_page(const uint32_t **page, int *ret_fd);
/* Unmaps the page and sets *page to NULL. *page may be NULL. */
void quarantine_page_free(const uint32_t **page);

/*
 * An unwind process of uid has ended with this status of wait(2). page may be NULL. Logs a line
 * when a file is quarantined.
 */
void quarantine_died(struct quarantine *q, uint32_t uid, const uint32_t *page, int status);

/*
 * Checks a file that is about to be sent to an unwind process of uid. *ret_number goes with it:
 * the same each time for the same file, 0 for kinds of files that have none. Returns 0, or
 * -EACCES if the file is quarantined.
 */
must_check int quarantine_hand(struct quarantine *q, uint32_t uid,
			       const struct msg_file_request *request,
			       const struct file_shown *file, uint32_t *ret_number);

/*
 * Counts a death of an unwind process of uid at the file with this number. Returns true if this
 * death quarantines the file. If memory is short, counts nothing.
 */
bool quarantine_count(struct quarantine *q, uint32_t uid, uint32_t number);
/*
 * Returns true if the file is quarantined for uid. Stores the file's name if there was a death
 * at it.
 */
bool quarantine_is_left_out(struct quarantine *q, uint32_t uid, uint32_t number,
			    const struct file_shown *file);

/*
 * Iterates over the quarantined files: returns the one after f, or the first if f is NULL; NULL
 * after the last.
 */
const struct quarantine_file *quarantine_next(const struct quarantine *q,
					      const struct quarantine_file *f);
/* Returns the number of quarantined files. */
size_t quarantine_left_out(const struct quarantine *q);

/* Forgets all deaths. Called at a reload, so that repaired files are read again. */
void quarantine_clear(struct quarantine *q);

#endif
