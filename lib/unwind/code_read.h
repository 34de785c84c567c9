/*
 * What code.c, code_start.c and code_way.c have in common: the bytes of an
 * image's code, and answers that are kept with it.
 */
#ifndef LIB_UNWIND_CODE_READ_H
#define LIB_UNWIND_CODE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/unwind/space.h"

/* The mapping at addr, if there is an image that can be read; or NULL. */
struct space_mapping *code_mapping(struct unwind_space *s, uint64_t addr,
				   const struct map **ret_map);

/*
 * Reads up to n bytes of code at vaddr from the image's file. Where that can't
 * be had, there are none in the whole call of the module.
 */
size_t code_read(struct unwind_space *s, struct space_mapping *m,
		 const struct map *map, uint64_t vaddr, uint8_t *bytes,
		 size_t n);

/*
 * Keeps an answer, but none of a call in which code could not be read: this may
 * be for one process only, and the answer is for all. Forgetting one costs time
 * only.
 */
void code_remember(struct unwind_space *s, struct table *t, uint64_t key,
		   uint32_t fact);

#endif
