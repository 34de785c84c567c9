/*
 * The spool: envelopes on disk that wait for a server that does not answer. ship adds an envelope
 * while the server cannot be reached. When the server answers again, ship opens the oldest one,
 * sends it and removes it.
 *
 * The spool is a directory with one file for each envelope, compressed by gzip and without
 * sent_at (ENVELOPE_NOT_SENT). A file is named
 *
 *     TTTTTTTTTTTTTTTT-IIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII-DDDDDDDDDDDDDDDD.gz
 *     TTTTTTTTTTTTTTTT-IIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII-DDDDDDDDDDDDDDDD.v1.gz
 *
 * in lower-case hexadecimal digits. T: Unix time in ms at which the envelope was added; I: chunk
 * id; D: the DSN's number (dsn_hash). .v1.gz: the envelope has a V1 profile. The kind is in the
 * name because an envelope that is dropped is counted by its kind without being read.
 *
 * Limits: bytes, files and age, in struct spool_limits. The oldest files are removed when a limit
 * would be exceeded. An entry takes 48 bytes of memory. Finding an entry is a linear search.
 *
 * Power failures: a file is written under a name that begins with a dot, synchronised, and
 * renamed; then the directory is synchronised. spool_new removes files that were never renamed.
 *
 * Damaged and foreign files: a file that is no envelope of the spool is set aside, which means that
 * ".bad" is appended to its name and that it is never sent; its bytes count against the limit,
 * until the user removes the file.
 * Directories are ignored; special files are ignored and reported (SPOOL_IGNORED).
 *
 * No other process may add files to the directory. A ship of another DSN may move files of its DSN
 * out of the directory (daemon/ship/spool_dirs.h): spool_forget_moved() notices that. Not
 * thread-safe. A struct spool_entry that a function returns is valid until the next call that adds
 * or removes an envelope.
 */
#ifndef LIB_SHIP_SPOOL_H
#define LIB_SHIP_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "proto/envelope.h"

#define SPOOL_ID_BYTES 16
/* Size of the longest name, with the NUL. */
#define SPOOL_NAME_SIZE (16 + 1 + 2 * SPOOL_ID_BYTES + 1 + 16 + 6 + 1)

/* The suffix that a file gets when it is set aside. */
#define SPOOL_ASIDE ".bad"

struct spool_entry {
	/*
	 * Unix time of spool_add() or, if the clock was set back, 1 ms after the time of the newest
	 * envelope: so entries stay in order. spool_new() keeps a time in the future, because the
	 * clock of a machine that has just started can be years behind. With the time of this clock
	 * the envelope would expire as soon as the clock is set.
	 */
	uint64_t time_ms;
	uint64_t dsn;  /* dsn_hash() */
	uint64_t size; /* bytes of the file */
	enum envelope_kind kind;
	uint8_t id[SPOOL_ID_BYTES];
	uint8_t held_back; /* calls of spool_hold_back(), UINT8_MAX at most; not in the name */
};

/* Parses the 32 digits of a chunk id at text, ignoring what follows. Returns 0 or -EINVAL. */
must_check int spool_id_parse(const char *text, uint8_t ret[SPOOL_ID_BYTES]);

/* Parses the name of a file into an entry, size excepted. Returns 0 or -EINVAL. */
must_check int spool_name_parse(const char *name, struct spool_entry *ret);
/* Writes the name of an entry's file. */
void spool_name_format(const struct spool_entry *e, char ret[SPOOL_NAME_SIZE]);

/*
 * Calls fn for each name in the directory, "." and ".." included, until fn returns a value other
 * than 0. Returns that value, 0, -ENOMEM, or the error of opening or reading the directory.
 */
must_check int spool_for_each_name(int dir_fd, int (*fn)(void *ctx, const char *name), void *ctx);

struct spool_limits {
	uint64_t bytes; /* of all files, those that are set aside included */
	size_t count;	/* envelopes */
	uint64_t age_ms;
};

enum spool_event {
	SPOOL_OVERFLOW,	 /* an envelope was removed to make room */
	SPOOL_EXPIRED,	 /* an envelope was removed because it was older than age_ms */
	SPOOL_SET_ASIDE, /* a file was set aside */
	SPOOL_IGNORED	 /* a special file, or a file that could not be set aside, was ignored */
};

/*
 * Called for each event, from within a function of this module, so it must not add or remove
 * envelopes. name: the file's name before the event; valid during the call. error: for
 * SPOOL_SET_ASIDE and SPOOL_IGNORED the reason, a positive errno; else 0.
 */
typedef void (*spool_event_fn)(void *ctx, enum spool_event event, const char *name, int error);

struct spool_options {
	int dir_fd; /* the caller's; must stay open until spool_free() */
	struct spool_limits limits;
	uint64_t dsn;	      /* of the caller: only files of other DSNs may be moved (see above) */
	spool_event_fn event; /* not NULL */
	void *ctx;	      /* passed to event */
};

struct spool;

/*
 * Opens a spool: sets files with wrong names aside, removes unfinished files, reads the directory,
 * and applies the limit of age. The other limits are left to spool_add(): the ship of another DSN
 * may be about to move its files. Copies *o. now_ms: Unix time. Returns 0, -ENOMEM, or the error of
 * opening or reading the directory.
 */
must_check int spool_new(struct spool **ret, const struct spool_options *o, uint64_t now_ms);
/* Frees the spool and leaves the files on the disk. s may be NULL. */
void spool_free(struct spool *s);

/*
 * Writes the bytes of an envelope, as package_compress() makes them, to a new file, after removing
 * the oldest envelopes if a limit requires that. now_ms: Unix time. After success the file is on
 * the disk. After an error there is no new file; envelopes may have been removed all the same,
 * but not after -E2BIG, -ENOTEMPTY and -EEXIST.
 * Returns 0; -E2BIG if the envelope does not fit even into an empty spool; -ENOTEMPTY if it does
 * not fit beside the files that are set aside, even without other envelopes; -EEXIST if the spool
 * has an envelope of this id; -ENOMEM; or an error of open(2), write(2), fsync(2), close(2) or
 * rename(2).
 */
must_check int spool_add(struct spool *s, const uint8_t id[SPOOL_ID_BYTES], uint64_t dsn,
			 enum envelope_kind kind, const void *bytes, size_t size, uint64_t now_ms);

/*
 * Finds out, after an error of spool_add(), whether the disk works again: writes size zero bytes to
 * a file and removes it. Removes no envelope. Returns 0, -E2BIG, -ENOTEMPTY (see spool_add()),
 * -ENOMEM, or an error of open(2), write(2), fsync(2) or close(2).
 */
must_check int spool_try(struct spool *s, size_t size);

/*
 * Returns the oldest envelope of a kind for a DSN, of those that were held back least often; or
 * NULL.
 */
const struct spool_entry *spool_oldest(const struct spool *s, uint64_t dsn,
				       enum envelope_kind kind);

/*
 * Returns another envelope of the DSN and kind of e, chosen by 64 random bits, that was never held
 * back; or NULL. ship sends it to find out whether the server answers no request, or only that with
 * the envelope e.
 */
const struct spool_entry *spool_other(const struct spool *s, const struct spool_entry *e,
				      uint64_t random);

/*
 * Holds the envelope with this id back, until spool_free(): spool_oldest() returns others first.
 * ship calls this if the server answers other envelopes, but not this one. Does nothing if there is
 * no such envelope.
 */
void spool_hold_back(struct spool *s, const uint8_t id[SPOOL_ID_BYTES]);

/*
 * Returns the number of envelopes for a DSN. *ret_ms: the time between the oldest and the newest; 0
 * if there are fewer than two.
 */
size_t spool_span(const struct spool *s, uint64_t dsn, uint64_t *ret_ms);

/* Returns the envelope with this id, or NULL. */
const struct spool_entry *spool_find(const struct spool *s, const uint8_t id[SPOOL_ID_BYTES]);

/*
 * Opens the file of an envelope for reading. The caller closes *ret_fd. Returns 0; -EBADMSG if the
 * file's type or size has changed; or an error of openat(2). After an error that is not a lack of
 * descriptors or memory, the caller calls spool_set_aside().
 */
must_check int spool_open(const struct spool *s, const struct spool_entry *e, int *ret_fd);

/*
 * Removes an envelope: its entry, which e points to, and its file; synchronises the directory. If
 * the file cannot be removed, spool_new() finds it at the next start, and the envelope is sent
 * twice.
 */
void spool_remove(struct spool *s, const struct spool_entry *e);

/*
 * Sets the file of an envelope aside and removes the entry. error: the reason, a positive errno.
 * The event gets it: SPOOL_SET_ASIDE, or SPOOL_IGNORED if the file cannot be renamed. ENOENT means
 * that the file is gone, so its bytes do not count against the limit any more.
 */
void spool_set_aside(struct spool *s, const struct spool_entry *e, int error);

/* Removes the envelopes, of all DSNs, that are older than age_ms. */
void spool_expire(struct spool *s, uint64_t now_ms);

/*
 * Removes the entries of envelopes of DSNs other than options.dsn whose files are gone: the ship of
 * that DSN has moved the files to its own directory. Makes a system call for each envelope of
 * another DSN.
 */
void spool_forget_moved(struct spool *s);

/* Returns the number of envelopes. */
size_t spool_count(const struct spool *s);
/* Returns the bytes of all files, those that are set aside included. */
uint64_t spool_bytes(const struct spool *s);

#endif
