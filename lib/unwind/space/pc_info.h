/*
 * Finds the unwind rule for an address of a target. The walk does so for each frame.
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
	const struct rule *rule; /* never NULL; owned by rows, or static */
	const struct rows *rows; /* around addr; NULL if image is NULL */
	struct image *image;	 /* NULL: no file, or the file cannot be read */
	uint64_t bias;		 /* address in memory minus address in the file */
};

/* The size of the table: 20 KB a space, little beside the rest of a target. */
#define PC_INFOS 512

/*
 * Looks up addr. Opens its image and compiles its rows if that was not done. Never
 * NULL. Valid until another address is looked up, or the public function that is
 * running ends.
 */
const struct pc_info *pc_info_at(struct unwind_space *s, uint64_t addr);

/*
 * Returns true if both addresses are in the same image, or neither is in one. Two calls of
 * pc_info_at() cannot be compared: the second may overwrite the first.
 */
bool pc_info_same_image(struct unwind_space *s, uint64_t a, uint64_t b);

/* Returns true if no executable mapping covers the address. */
bool pc_info_is_unmapped(const struct pc_info *p);

/* Returns true if the target made the code at the address at run time: it is in no file. */
bool pc_info_is_generated(const struct pc_info *p);

#endif
