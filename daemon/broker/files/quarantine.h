/*
 * Quarantine: files at which unwind processes die are not handed to them any more.
 *
 * With each program, library or debug file that the broker hands to an unwind process goes
 * a number: a hash of the file's identity under a key of this broker. The process shows the
 * number of the file that it reads in a page that it shares with the broker
 * (quarantine_page). When the process dies by its own fault, the broker counts a death for
 * that number; after QUARANTINE_DEATHS the file is left out.
 *
 * Deaths are counted by user, since the page is written by a process that whoever made the
 * file may have taken over. Such a process can have files left out that it was given
 * itself, and no others, for the targets of its own user.
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

/* One death may be chance, or a fault in something else. */
#define QUARANTINE_DEATHS 3

/*
 * Files with at least one death. Beyond that the oldest one is forgotten: of the same user,
 * if he has QUARANTINE_OF_USER; of all, if there are QUARANTINE_MAX.
 */
#define QUARANTINE_OF_USER 32
#define QUARANTINE_MAX	   256

struct quarantine_file {
	uint32_t uid;
	uint32_t number;	/* of the file */
	uint32_t deaths;	/* 0: this place is free */
	uint64_t at;		/* of its last death, in deaths of all */
	struct file_shown file; /* since it was handed over after a death */
};

struct quarantine_table {
	struct quarantine_file v[QUARANTINE_MAX];
	uint64_t deaths; /* of all files */
};

struct quarantine {
	uint8_t key[SIPHASH_KEY_SIZE];	/* of the numbers */
	struct quarantine_table *table; /* NULL: no process has died at a file yet */
	uint64_t refused; /* questions of unwind that broke the rules of file_request.h */
};

/* Draws the key; aborts if the kernel has no random numbers. All else is zeros before. */
void quarantine_init(struct quarantine *q);

/*
 * Makes the page of an unwind process that is about to start, in place of *page, which is
 * unmapped unless it is NULL. *ret_fd, the caller's, is the page's memfd for the process.
 * Returns 0 or -errno.
 */
must_check int quarantine_page(const uint32_t **page, int *ret_fd);
/* Unmaps the page and sets *page to NULL; takes NULL in *page. */
void quarantine_page_free(const uint32_t **page);

/*
 * An unwind process of uid with this page (may be NULL) has ended with this status of
 * wait(2). Logs a line when a file is left out from now on.
 */
void quarantine_died(struct quarantine *q, uint32_t uid, const uint32_t *page, int status);

/*
 * A file is about to be handed to an unwind process of uid. *ret_number goes with it: the
 * same each time for the same file, 0 for kinds of files that have none. Returns 0, or
 * -EACCES if the file is left out.
 */
must_check int quarantine_hand(struct quarantine *q, uint32_t uid,
			       const struct msg_file_request *request,
			       const struct file_shown *file, uint32_t *ret_number);

/*
 * Counts a death of a process of uid at the file of this number. True if this death is the
 * one from which on the file is left out. Without memory nothing is counted.
 */
bool quarantine_count(struct quarantine *q, uint32_t uid, uint32_t number);
/* Is the file left out for uid? Notes the file's name, if there was a death at it. */
bool quarantine_is_left_out(struct quarantine *q, uint32_t uid, uint32_t number,
			    const struct file_shown *file);

/* The file after f that is left out, the first for NULL; NULL after the last. */
const struct quarantine_file *quarantine_next(const struct quarantine *q,
					      const struct quarantine_file *f);
/* How many files are left out. */
size_t quarantine_left_out(const struct quarantine *q);

/* Forgets all deaths, as at a reload: files that were mended are read again. */
void quarantine_clear(struct quarantine *q);

#endif
