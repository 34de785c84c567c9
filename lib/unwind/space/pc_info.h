/*
 * Finds the unwind rule for an address of a target. The walk calls this module for each frame,
 * within one call of a public function of unwind.h.
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
	const struct rule *rule; /* RULE_CFA_NONE: no rule. Never NULL; owned by rows, or static */
	const struct rows *rows; /* around addr; NULL if image is NULL */
	struct image *image;	 /* NULL: no file, or the file cannot be read */
	uint64_t bias;		 /* address in memory minus address in the file */
};

/* Entries of the table: 20 KB a space, little beside the other memory for a target. */
#define PC_INFOS 512

/*
 * Looks up addr, without a version in its upper bits. Requests its image's file and compiles its
 * rows if that was not done before. Never returns NULL. The result is valid until another address
 * is looked up, or the public function that is running ends.
 */
const struct pc_info *pc_info_at(struct unwind_space *s, uint64_t addr);

/*
 * Returns true if both addresses are in the same image, or neither is in one. Two calls of
 * pc_info_at() cannot be compared: the second may overwrite the first.
 */
bool pc_info_same_image(struct unwind_space *s, uint64_t a, uint64_t b);

/* Returns true if no executable mapping covers the address, or that mapping is in doubt. */
bool pc_info_is_unmapped(const struct pc_info *p);

/* Returns true if the target made the code at the address at run time: it is in no file. */
bool pc_info_is_generated(const struct pc_info *p);

#endif
