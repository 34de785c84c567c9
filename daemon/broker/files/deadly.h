/*
 * The files at which unwind processes die: how often each of them, and which
 * are therefore left out. By user, since the process that says so is in the
 * hands of whoever made the file: it can have files left out that it was given,
 * for the targets of its own user.
 */
#ifndef DAEMON_BROKER_FILES_DEADLY_H
#define DAEMON_BROKER_FILES_DEADLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/files/file_shown.h"

/* One death may be chance, or a fault in something else. */
#define DEADLY_DEATHS 3

/*
 * Each has cost a death at least. Beyond that the oldest one goes: of the same
 * user, who has no more than so many; of all, where there are so many.
 */
#define DEADLY_OF_USER 32
#define DEADLY_MAX     256

struct deadly_file {
	uint32_t uid;
	uint32_t number;	/* of the file: blame.c */
	uint32_t deaths;	/* 0: this place is free */
	uint64_t at;		/* of its last death, in deaths of all */
	struct file_shown file; /* since it was handed over after a death */
};

struct deadly {
	struct deadly_file v[DEADLY_MAX];
	uint64_t deaths; /* of all files */
};

/*
 * A process of uid has died at the file. True: for the time that makes it one
 * that is left out.
 */
bool deadly_count(struct deadly *d, uint32_t uid, uint32_t number);

/*
 * Is it left out? Asked whenever it is to be handed over, so that it has its
 * name here by the time that it is.
 */
bool deadly_is_left_out(struct deadly *d, uint32_t uid, uint32_t number,
			const struct file_shown *file);

/* The next one that is left out, the first for NULL; NULL after the last, and
 * where d is NULL. */
const struct deadly_file *deadly_next(const struct deadly *d, const struct deadly_file *f);
size_t deadly_left_out(const struct deadly *d);

/* Nothing is known of any. */
void deadly_clear(struct deadly *d);

#endif
