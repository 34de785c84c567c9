/*
 * Quarantine: when unwind processes of an owner key (daemon/process/owner.h) have died
 * QUARANTINE_DEATHS times at a file, the broker no longer sends the file to unwind processes of
 * that key.
 *
 * With each program, library or debug file the broker sends the unwind process a number: a hash of
 * the file's identity, with a random key that only the broker knows. While the unwind process reads
 * the file, the number of the file is in a page that the process shares with the broker
 * (quarantine_page_new). When the process dies by its own fault, quarantine_unwind_died() counts a
 * death at the file with the number in the page.
 *
 * An unwind process that was taken over can write any number into its page. Deaths are counted per
 * owner key, and a number that no file had quarantines no file: it only takes up an entry of the
 * table. So such a process can quarantine only files that were sent to an unwind process of its own
 * owner key, and only for profiled processes of that owner key.
 */
#ifndef DAEMON_BROKER_FILES_QUARANTINE_H
#define DAEMON_BROKER_FILES_QUARANTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/files/file_label.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/owner.h"
#include "lib/base/siphash.h"
#include "lib/base/util.h"

/* Deaths until a file is quarantined. One or two deaths may have another cause. */
#define QUARANTINE_DEATHS 3

/*
 * The maximum numbers of files with at least one death: QUARANTINE_OF_USER for a user, whose owner
 * keys count together, and QUARANTINE_MAX for all users. If a maximum is reached, a new file
 * replaces the one whose last death is the oldest: of this user, or of all users.
 */
#define QUARANTINE_OF_USER 32
#define QUARANTINE_MAX	   256

struct quarantine_file {
	struct owner_key owner;
	uint32_t number;	/* of the file */
	uint32_t deaths;	/* 0: the entry is free */
	uint64_t last_death;	/* table.deaths just after the file's last death */
	struct file_label file; /* set at the first request after a death; before, name is "" */
};

struct quarantine_table {
	struct quarantine_file v[QUARANTINE_MAX];
	uint64_t deaths; /* the number of deaths so far, at all files */
};

struct quarantine {
	uint8_t key[SIPHASH_KEY_SIZE];	/* of the hashes that are the numbers */
	struct quarantine_table *table; /* NULL: no death so far */
	/* How many requests of unwind broke the rules of daemon/msg/file_request.h (inbox.c). */
	uint64_t refused;
};

/*
 * Draws the random key of the hashes. The caller has set *q to zeros. Aborts if getrandom(2) fails.
 */
void quarantine_init(struct quarantine *q);

/*
 * Makes the page of an unwind process that is about to start, and stores it in *page. Unmaps the
 * page that was in *page, if that is not NULL. *ret_fd: the memfd of the page, which the caller
 * sends to the process and closes. Returns 0; or -errno, and *page stays as it was.
 */
must_check int quarantine_page_new(const uint32_t **page, int *ret_fd);
/* Unmaps the page and sets *page to NULL. *page may be NULL. */
void quarantine_page_free(const uint32_t **page);

/*
 * Handles the end of an unwind process of owner. status: of wait(2). If status shows a fault of the
 * process, counts a death at the file whose number is in page. A fault is an exit status other than
 * 0, or one of the signals SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS, SIGXCPU. Returns the
 * file that this death quarantines, valid until the next call of a function here, or NULL. Counts
 * nothing if page is NULL or has the number 0.
 */
const struct quarantine_file *quarantine_unwind_died(struct quarantine *q,
						     const struct owner_key *owner,
						     const uint32_t *page, int status);

/*
 * Checks a file that is about to be sent to an unwind process of owner, and calculates the number
 * of the file for the message. The number is 0, and the file is never quarantined, if request asks
 * for neither a mapped file nor a debug file (FILE_KIND_MAPS, for example). Returns 0, or -EACCES
 * if the file is quarantined for owner.
 */
must_check int quarantine_check_file(struct quarantine *q, const struct owner_key *owner,
				     const struct msg_file_request *request,
				     const struct file_label *file, uint32_t *ret_number);

/*
 * Part of quarantine_unwind_died(), for tests: counts a death of an unwind process of owner at the
 * file with this number. Returns true if this death is the file's QUARANTINE_DEATHS-th. If memory
 * is short, counts nothing and returns false.
 */
bool quarantine_count_death(struct quarantine *q, const struct owner_key *owner, uint32_t number);
/*
 * Returns true if the file with this number is quarantined for owner. If an unwind process of owner
 * has died at the file, also stores a copy of *file, for the log and the status.
 */
bool quarantine_has(struct quarantine *q, const struct owner_key *owner, uint32_t number,
		    const struct file_label *file);

/*
 * Iterates over the quarantined files of all users: returns the file after f, or the first one if f
 * is NULL; NULL after the last. Skips files that unwind has not requested again after a death,
 * since their names are not known.
 */
const struct quarantine_file *quarantine_next(const struct quarantine *q,
					      const struct quarantine_file *f);
/* Returns how many files quarantine_next() returns. */
size_t quarantine_count_files(const struct quarantine *q);

/* Forgets all deaths. Called at a reload, so that repaired files are read again. */
void quarantine_clear(struct quarantine *q);

#endif
