/*
 * Finds the unwind rule for an address of a target. The walk looks up each frame here.
 *
 * Stacks of a target go through the same few hundred addresses again and again, so
 * each space keeps the last results in a direct-mapped table.
 */
#ifndef LIB_UNWIND_SPACE_PC_INFO_H
#define LIB_UNWIND_SPACE_PC_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/rules/rows.h"
#include "lib/unwind/space/space.h"

struct pc_info {
	uint64_t addr;
	/* Never NULL. If its cfa is RULE_CFA_NONE, there is no rule. Owned by rows, or static. */
	const struct rule *rule;
	const struct rows *rows; /* the rows of the image around addr; NULL if image is NULL */
	struct image *image;	 /* NULL: no file, or the file cannot be read */
	uint64_t bias;		 /* address in memory minus address in the file */
};

/* Entries of the table: 20 KB a space, little beside the other memory for a target. */
#define PC_INFOS 512

/*
 * Looks up addr, which has no version in its upper bits (versions.h). Requests the file that is
 * mapped there and compiles its rows, if that was not done before. Never returns NULL. The result
 * is valid until this function is called for another address, and at most until cache_end(), which
 * may free images (image/cache.h).
 */
const struct pc_info *pc_info_at(struct unwind_space *s, uint64_t addr);

/*
 * Returns true if both addresses are in the same image, or neither is in one. Do not compare two
 * results of pc_info_at() instead: the second call may overwrite the result of the first.
 */
bool pc_info_same_image(struct unwind_space *s, uint64_t a, uint64_t b);

/* Returns true if p->addr is in no executable mapping, or in one that is in doubt (versions.h). */
bool pc_info_is_unmapped(const struct pc_info *p);

/* Returns true if the target made the code at p->addr at run time: the code is in no file. */
bool pc_info_is_generated(const struct pc_info *p);

#endif
