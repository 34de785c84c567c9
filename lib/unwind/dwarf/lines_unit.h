/*
 * One unit of an image's DWARF: its functions and what was inlined into them,
 * as arrays of address ranges.
 */
#ifndef LIB_UNWIND_DWARF_LINES_UNIT_H
#define LIB_UNWIND_DWARF_LINES_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"

/* Blocks in functions in namespaces. */
#define LINES_DEPTH_MAX 64

/* Counted for a whole image. */
struct lines_budget {
	clock_fn now_ns; /* NULL: time is no limit */
	uint64_t left_ns;
	uint64_t since_ns; /* while work is under way */
	size_t ranges;	   /* that may still be read */
	size_t abbrevs;	   /* bytes */
	size_t tables;	   /* bytes */
	uint32_t steps;
	bool exhausted; /* something was used up */
};

/* Between these two time counts. */
void lines_budget_start(struct lines_budget *b);
void lines_budget_stop(struct lines_budget *b);
/* Takes n of *what. False, and cut, if there is not so much. */
bool lines_budget_take(struct lines_budget *b, size_t *what, size_t n);
/* False, and cut, if the time is up. To be called between libdw's calls. */
bool lines_budget_go_on(struct lines_budget *b);

struct lines_range {
	uint64_t lo, hi;
	Dwarf_Off die;
	/*
	 * Of a unit's range: first is the unit's index. Of a function's range:
	 * the place of its inlined functions, for lines_unit_inlined().
	 */
	uint32_t first, n;
};

/* Consecutive ranges of a struct lines_ranges. */
struct lines_slice {
	const struct lines_range *v;
	size_t n;
};

struct lines_ranges {
	struct lines_range *v;
	size_t n, cap;
};

struct lines_unit {
	Dwarf_Off die;
	bool tried;
	struct lines_ranges functions; /* by lo */
	struct lines_ranges inlined;   /* by function, the outer ones first */
	bool has_table;		       /* its line table may be asked for */
};

void lines_ranges_fini(struct lines_ranges *r);
/* The ranges of an entry, added with these words. 0 or -ENOMEM. */
must_check int lines_ranges_add(struct lines_ranges *r, Dwarf_Die *die, struct lines_budget *b,
				uint32_t first);

/* Reads the functions of u. What the budget does not allow is left out. */
must_check int lines_unit_read(struct lines_unit *u, Dwarf_Die *unit, struct lines_budget *b);

/*
 * The functions inlined into function, and into the functions nested in it. The
 * only access to u->inlined after lines_unit_read(): the slice ends within the
 * array, whatever the range of the function says.
 */
struct lines_slice lines_unit_inlined(const struct lines_unit *u,
				      const struct lines_range *function);

/* The last range in v, sorted by lo, that starts at or before vaddr. */
const struct lines_range *lines_ranges_find(const struct lines_ranges *r, uint64_t vaddr);
int lines_ranges_compare(const void *a, const void *b);

#endif
