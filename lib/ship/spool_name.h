/*
 * What a file of the spool is called:
 *
 *     TTTTTTTTTTTTTTTT-IIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII-DDDDDDDDDDDDDDDD.gz
 *     TTTTTTTTTTTTTTTT-IIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII-DDDDDDDDDDDDDDDD.v1.gz
 *
 * T: Unix time in ms at which it was put there; I: chunk id; D: whose it is,
 * a number for each DSN; all in lower-case hexadecimal digits. The second one
 * has a V1 profile: who drops it has to say so without a look into it.
 */
#ifndef LIB_SHIP_SPOOL_NAME_H
#define LIB_SHIP_SPOOL_NAME_H

#include <stdint.h>

#include "lib/base/util.h"
#include "proto/envelope.h"

#define SPOOL_ID_BYTES 16
/* Of the longest, with the NUL. */
#define SPOOL_NAME_SIZE (16 + 1 + 2 * SPOOL_ID_BYTES + 1 + 16 + 6 + 1)

struct spool_entry {
	uint64_t time_ms; /* of the clock as it was; not later than now */
	uint64_t dsn;
	uint64_t size; /* bytes of the file */
	enum envelope_kind kind;
	uint8_t id[SPOOL_ID_BYTES];
};

/* A chunk id of 32 digits, whatever follows. 0, or -EINVAL: it is none. */
must_check int spool_id_parse(const char *text, uint8_t ret[SPOOL_ID_BYTES]);

/* 0 and the entry but for its size, or -EINVAL: no such name. */
must_check int spool_name_parse(const char *name, struct spool_entry *ret);
void spool_name(const struct spool_entry *e, char ret[SPOOL_NAME_SIZE]);

/*
 * Calls fn for each name in the directory, "." too, until it does not return 0.
 * Returns that, -ENOMEM, or why the directory cannot be read.
 */
must_check int spool_names(int dir_fd, int (*fn)(void *ctx, const char *name), void *ctx);

#endif
