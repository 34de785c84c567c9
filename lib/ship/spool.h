/*
 * Envelopes that wait on disk for a server that does not answer: a directory
 * with one file each, compressed, without the time at which it was sent.
 *
 * Their names are those of lib/ship/spool_name.h. A file has its name once it
 * and the name are on the disk, and until its removal is: power may fail at any
 * point. Before, the name begins with a dot.
 *
 * Whatever else is found is set aside: ".bad" is put behind its name, and it is
 * looked at no more; directories and what is no regular file are left alone.
 *
 * Nobody else may write to the directory, but take files out of it that are for
 * another DSN. Not thread-safe.
 */
#ifndef LIB_SHIP_SPOOL_H
#define LIB_SHIP_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/ship/spool_name.h"

struct spool_limits {
	uint64_t bytes; /* of all files, those set aside too */
	size_t count;	/* an entry takes 40 bytes of memory */
	uint64_t age_ms;
};

enum spool_event {
	SPOOL_OVERFLOW,	 /* the oldest had to go, for its place */
	SPOOL_EXPIRED,	 /* it was older than age_ms */
	SPOOL_SET_ASIDE, /* error: why, a positive errno */
	SPOOL_LEFT_ALONE /* it is no file of ours, and cannot be set aside */
};

/* name: of the file, as it was; valid during the call. */
typedef void (*spool_fn)(void *ctx, enum spool_event event, const char *name, int error);

struct spool_options {
	int dir_fd; /* stays the caller's, and open while the spool is there */
	struct spool_limits limits;
	spool_fn event;
	void *ctx;
};

struct spool;

/*
 * Reads the directory: files that were never finished are removed, what is
 * above the limits goes. Returns 0, -ENOMEM, or why it cannot be read.
 */
must_check int spool_new(struct spool **ret, const struct spool_options *o, uint64_t now_ms);
/* The files stay. Takes NULL. */
void spool_free(struct spool *s);

/*
 * Puts bytes, an envelope of package_compress without sent_at, into a file; the
 * oldest others go if there is no place. After 0 it is on the disk; after an
 * error nothing of it is: -E2BIG if it alone is above the limits, -EEXIST if it
 * is there, -ENOMEM, or an error of open(2), write(2), fsync(2) or rename(2).
 */
must_check int spool_add(struct spool *s, const uint8_t id[SPOOL_ID_BYTES], uint64_t dsn,
			 enum envelope_kind kind, const void *bytes, size_t size, uint64_t now_ms);

/* The oldest of a kind for a DSN, NULL: none. Valid until the spool is changed.
 */
const struct spool_entry *spool_oldest(const struct spool *s, uint64_t dsn,
				       enum envelope_kind kind);

/* How many for a DSN, and the time from the oldest's to the newest's. */
size_t spool_span(const struct spool *s, uint64_t dsn, uint64_t *ret_ms);

/* The one of this id, NULL: none. Valid until the spool is changed. */
const struct spool_entry *spool_find(const struct spool *s, const uint8_t id[SPOOL_ID_BYTES]);

/*
 * Opens its file to read. -EBADMSG if that is not as it was; or openat(2)'s
 * error. Then spool_set_aside is due.
 */
must_check int spool_open(const struct spool *s, const struct spool_entry *e, int *ret_fd);

/* Removes the file; it does not come back after a power failure. */
void spool_remove(struct spool *s, const struct spool_entry *e);

/* Never to be sent: error says why. */
void spool_set_aside(struct spool *s, const struct spool_entry *e, int error);

/* Removes what is too old, of all DSNs. */
void spool_expire(struct spool *s, uint64_t now_ms);

/*
 * Forgets those of other DSNs than this one whose files are gone: who sends for
 * that DSN has taken them. Looks for each of them.
 */
void spool_forget_taken(struct spool *s, uint64_t dsn);

size_t spool_count(const struct spool *s);
/* Of all files, those that are set aside too. */
uint64_t spool_bytes(const struct spool *s);

#endif
