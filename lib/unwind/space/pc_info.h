/*
 * The rule by which the caller of a frame is found, for an address of a target:
 * what the walk asks for each frame. Stacks of a target go through the same few
 * hundred addresses again and again, so the last ones are kept in a table
 * (direct-mapped, one for each space).
 */
#ifndef LIB_UNWIND_SPACE_PC_INFO_H
#define LIB_UNWIND_SPACE_PC_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/rules/rows.h"
#include "lib/unwind/space/space.h"

struct pc_info {
	uint64_t addr;
	const struct rule *rule; /* never NULL; of rows */
	const struct rows *rows; /* around addr; NULL where image is */
	struct image *image;	 /* NULL: no file, or none that can be read */
	uint64_t bias;		 /* address in memory less address in the file */
};

/* 20 KB a space: small beside what a target costs otherwise. */
#define PC_INFOS 512

/*
 * What is known of addr. Opens its image and compiles its rows if that has not
 * been done. Never NULL. Valid until the next call for another address, or the
 * end of the public function that is under way.
 */
const struct pc_info *pc_info_at(struct unwind_space *s, uint64_t addr);

/* True if the address lies in no executable mapping. */
bool pc_info_is_unmapped(const struct pc_info *p);

#endif
