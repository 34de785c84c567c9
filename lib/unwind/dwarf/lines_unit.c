#include "lib/unwind/dwarf/lines_unit.h"

#include <dwarf.h>
#include <stdlib.h>

#include "lib/base/array.h"

/* Checks between two readings of the clock, which may cost as much as an entry. */
#define CHECKS_A_READING 16

void lines_budget_start(struct lines_budget *b)
{
	if (b->now_ns)
		b->since_ns = b->now_ns();
}

void lines_budget_stop(struct lines_budget *b)
{
	uint64_t used = b->now_ns ? b->now_ns() - b->since_ns : 0;

	b->left_ns -= min_u64(b->left_ns, used);
}

bool lines_budget_take(struct lines_budget *b, size_t *left, size_t n)
{
	if (n > *left) {
		b->exhausted = true;
		return false;
	}
	*left -= n;
	return true;
}

bool lines_budget_has_time(struct lines_budget *b)
{
	if (b->now_ns && ++b->checks % CHECKS_A_READING == 0 &&
	    b->now_ns() - b->since_ns >= b->left_ns) {
		b->exhausted = true;
		return false;
	}
	return true;
}

void lines_ranges_fini(struct lines_ranges *r)
{
	free(r->v);
	*r = (struct lines_ranges){0};
}

static int add_range(struct lines_ranges *r, const struct lines_range *range)
{
	if (array_grow(r->v, r->n, r->cap) < 0)
		return -ENOMEM;
	r->v[r->n++] = *range;
	return 0;
}

int lines_ranges_add(struct lines_ranges *r, Dwarf_Die *die, struct lines_budget *b, uint32_t first)
{
	struct lines_range range = {.die = dwarf_dieoffset(die), .first = first};
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0 && lines_budget_has_time(b)) {
		int ret;

		/* Address 0: the linker removed the code. */
		if (lo == 0 || lo >= hi)
			continue;
		if (!lines_budget_take(b, &b->ranges, 1))
			break;
		range.lo = lo;
		range.hi = hi;
		ret = add_range(r, &range);
		if (ret)
			return ret;
	}
	return 0;
}

int lines_ranges_compare(const void *a, const void *b)
{
	const struct lines_range *x = a;
	const struct lines_range *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

const struct lines_range *lines_ranges_find(const struct lines_ranges *r, uint64_t vaddr)
{
	const size_t n = array_upper_bound(r->v, r->n, lo, vaddr);

	return n > 0 ? &r->v[n - 1] : NULL;
}

struct lines_slice lines_unit_inlined(const struct lines_unit *u,
				      const struct lines_range *function)
{
	const struct lines_ranges *all = &u->inlined;
	const size_t first = min_size(function->first, all->n);

	return (struct lines_slice){
		.v = all->n > 0 ? all->v + first : NULL,
		.n = min_size(function->n, all->n - first),
	};
}

static int read_children(struct lines_unit *u, Dwarf_Die *parent, struct lines_budget *b,
			 unsigned int depth);

static int read_function(struct lines_unit *u, Dwarf_Die *die, struct lines_budget *b,
			 unsigned int depth)
{
	size_t first = u->functions.n, end;
	size_t first_inlined = u->inlined.n;
	int r;

	r = lines_ranges_add(&u->functions, die, b, (uint32_t)first_inlined);
	/* Later ranges belong to functions nested in this one. */
	end = u->functions.n;
	/* Declarations, and functions that were inlined everywhere, have no code. */
	if (r == 0 && end > first)
		r = read_children(u, die, b, depth);
	for (size_t i = first; i < end; i++)
		u->functions.v[i].n = (uint32_t)(u->inlined.n - first_inlined);
	return r;
}

static int read_entry(struct lines_unit *u, Dwarf_Die *die, struct lines_budget *b,
		      unsigned int depth)
{
	int r;

	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return read_function(u, die, b, depth);
	case DW_TAG_inlined_subroutine:
		r = lines_ranges_add(&u->inlined, die, b, 0);
		return r ? r : read_children(u, die, b, depth);
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return read_children(u, die, b, depth);
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return u->types_have_code ? read_children(u, die, b, depth) : 0;
	default:
		return 0;
	}
}

static int read_children(struct lines_unit *u, Dwarf_Die *parent, struct lines_budget *b,
			 unsigned int depth)
{
	Dwarf_Die die;
	int r = 0;

	if (depth == LINES_DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return 0;
	do {
		r = read_entry(u, &die, b, depth + 1);
	} while (r == 0 && lines_budget_has_time(b) && dwarf_siblingof(&die, &die) == 0);
	return r;
}

int lines_unit_read(struct lines_unit *u, Dwarf_Die *unit, struct lines_budget *b)
{
	int r;

	u->tried = true;
	/* Methods, before Rust 1.69. Types of C++ have many entries inside, but no code. */
	u->types_have_code = dwarf_srclang(unit) == DW_LANG_Rust;
	r = read_children(u, unit, b, 0);
	if (u->functions.n > 0)
		qsort(u->functions.v, u->functions.n, sizeof(u->functions.v[0]),
		      lines_ranges_compare);
	return r;
}
