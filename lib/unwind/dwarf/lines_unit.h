/*
 * The functions of one DWARF unit (usually one source file) and the functions inlined into them, as
 * arrays of address ranges; and the budget that limits what reading an image costs. Used by
 * lines.c. A die is a DWARF entry, given by its offset in .debug_info; addresses are those of the
 * ELF file.
 */
#ifndef LIB_UNWIND_DWARF_LINES_UNIT_H
#define LIB_UNWIND_DWARF_LINES_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"

/* The most levels of namespaces, functions and blocks in a unit. Deeper entries are left out. */
#define LINES_DEPTH_MAX 64

/* What reading one image may still cost; shared by all of its units. The caller sets it. */
struct lines_budget {
	clock_fn now_ns; /* processor time; NULL: no time limit */
	uint64_t left_ns;
	uint64_t since_ns; /* when lines_budget_start() was called */
	size_t ranges;	   /* address ranges that may still be stored */
	size_t abbrevs;	   /* bytes of abbreviations that libdw may still read */
	size_t tables;	   /* bytes of line tables that libdw may still decode */
	size_t paths;	   /* bytes of paths of files that libdw may still make */
	uint32_t checks;   /* calls of lines_budget_has_time() so far; each 16th reads the clock */
	bool exhausted;	   /* some limit was reached */
};

/*
 * Call these two before and after each piece of work, such as the look-up of one address:
 * lines_unit_read() and lines_ranges_add() do not call them. lines_budget_stop() subtracts the
 * processor time since lines_budget_start() from left_ns.
 */
void lines_budget_start(struct lines_budget *b);
void lines_budget_stop(struct lines_budget *b);
/*
 * Subtracts n from *left, which is b->ranges, b->abbrevs, b->tables or b->paths. If *left is
 * smaller than n, returns false, sets exhausted, and leaves *left as it is.
 */
bool lines_budget_take(struct lines_budget *b, size_t *left, size_t n);
/*
 * Returns false and sets exhausted if left_ns has passed since lines_budget_start(). Only each 16th
 * call reads the clock; the others return true, even if exhausted is set. Call it between two calls
 * of libdw within a piece of work.
 */
bool lines_budget_has_time(struct lines_budget *b);

struct lines_range {
	uint64_t lo, hi; /* hi is exclusive */
	Dwarf_Off die;	 /* the unit, function or inlined function that has the range */
	/*
	 * Range of a unit: first is the unit's index, n is 0. Range of a function: the ranges of
	 * its inlined functions are the n elements of lines_unit.inlined from first on
	 * (lines_unit_inlined()). Range of an inlined function: both are 0.
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

/* A unit whose functions have not been read is zeros but for die, which the caller sets. */
struct lines_unit {
	Dwarf_Off die;	      /* of the unit, in .debug_info */
	bool tried;	      /* lines_unit_read() was called */
	bool types_have_code; /* set by lines_unit_read(): types have functions, as in Rust */
	struct lines_ranges functions; /* sorted by lo */
	struct lines_ranges inlined;   /* grouped by function, outer before inner */
	bool has_table;		       /* libdw has decoded the line table; set by lines.c */
};

void lines_ranges_fini(struct lines_ranges *r);
/*
 * Appends the address ranges of a DWARF entry to r. first: the value of lines_range.first in each.
 * Returns 0 or -ENOMEM. If the budget is exhausted, appends only some of them and returns 0.
 */
must_check int lines_ranges_add(struct lines_ranges *r, Dwarf_Die *die, struct lines_budget *b,
				uint32_t first);

/*
 * Reads the functions of the unit into u, as far as the budget allows, and sets u->tried. Call it
 * once for each unit. Returns 0 or -ENOMEM; after -ENOMEM u has the functions that were read. The
 * caller frees u->functions and u->inlined by lines_ranges_fini().
 */
must_check int lines_unit_read(struct lines_unit *u, Dwarf_Die *unit, struct lines_budget *b);

/*
 * Returns the ranges of the functions inlined into a function of u->functions, and into functions
 * that DWARF lists inside it, such as methods of a local class. The result is valid until
 * u->inlined is freed. Use only this function to access u->inlined: the result is within the array,
 * whatever first and n of the function's range are.
 */
struct lines_slice lines_unit_inlined(const struct lines_unit *u,
				      const struct lines_range *function);

/*
 * Returns the last range that starts at or before vaddr, or NULL. The caller compares vaddr with
 * hi, since the range may end before vaddr. r must be sorted by lo.
 */
const struct lines_range *lines_ranges_find(const struct lines_ranges *r, uint64_t vaddr);
/* For qsort(3): by lo, then by die. */
int lines_ranges_compare(const void *a, const void *b);

#endif
