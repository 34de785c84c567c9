#include "lib/unwind/dwarf/lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/dwarf/lines_check.h"
#include "lib/unwind/dwarf/lines_source.h"
#include "lib/unwind/dwarf/lines_unit.h"

/* The chain from a declaration to its definition and its abstract instance. */
#define ORIGINS_MAX 4
/* What libdw keeps of a row of a line table, in bytes. */
#define ROW_BYTES 40

struct lines {
	struct lines_source source;
	struct lines_budget budget;
	struct lines_unit *units;
	size_t n_units, cap_units;
	struct lines_ranges ranges; /* of units; first is the index of the unit */
};

static int add_unit(struct lines *l, Dwarf_Off die, struct lines_unit **ret)
{
	if (array_grow(l->units, l->n_units, l->cap_units) < 0)
		return -ENOMEM;
	*ret = &l->units[l->n_units++];
	**ret = (struct lines_unit){.die = die};
	return 0;
}

static size_t length_of_comp_dir(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	const char *dir = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attr));

	return dir ? strlen(dir) : 0;
}

/*
 * Decodes the line table of a unit, if the check and the budget allow it. The number of rows is
 * known afterwards only, so one table may exceed the budget.
 */
static bool read_table(struct lines *l, Dwarf_Die *unit)
{
	struct lines_budget *b = &l->budget;
	Dwarf_Attribute attr;
	Dwarf_Lines *rows;
	Dwarf_Word offset;
	uint64_t paths;
	size_t n;

	if (dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attr), &offset) ||
	    !lines_check_program(l->source.sections, offset, length_of_comp_dir(unit), b->paths,
				 &paths))
		return false;
	if (!lines_budget_take(b, &b->tables, 1) || !lines_budget_take(b, &b->paths, paths) ||
	    dwarf_getsrclines(unit, &rows, &n))
		return false;
	if (!lines_budget_take(b, &b->tables, n * ROW_BYTES))
		b->tables = 0;
	return true;
}

static int index_unit(struct lines *l, Dwarf_Off offset, Dwarf_Off abbrevs)
{
	size_t size = lines_check_abbrevs(l->source.sections[LINES_ABBREV].bytes,
					  l->source.sections[LINES_ABBREV].size, abbrevs,
					  l->budget.abbrevs + 1);
	struct lines_unit *u;
	Dwarf_Die die;
	int r;

	if (!lines_budget_take(&l->budget, &l->budget.abbrevs, size))
		return 0;
	/* Skips type units, partial units made by dwz, and skeletons of split units. */
	if (!dwarf_offdie(l->source.dwarf, offset, &die) ||
	    dwarf_tag(&die) != DW_TAG_compile_unit || dwarf_hasattr(&die, DW_AT_GNU_dwo_name) ||
	    dwarf_hasattr(&die, DW_AT_dwo_name))
		return 0;
	r = add_unit(l, offset, &u);
	if (r == 0)
		r = lines_ranges_add(&l->ranges, &die, &l->budget, (uint32_t)(l->n_units - 1));
	return r;
}

static int index_units(struct lines *l)
{
	Dwarf_Off at = 0, next, abbrevs;
	size_t header;
	int r = 0;

	while (r == 0 && lines_budget_has_time(&l->budget) &&
	       dwarf_next_unit(l->source.dwarf, at, &next, &header, NULL, &abbrevs, NULL, NULL,
			       NULL, NULL) == 0) {
		r = index_unit(l, at + header, abbrevs);
		if (next <= at)
			break;
		at = next;
	}
	if (l->ranges.n > 0)
		qsort(l->ranges.v, l->ranges.n, sizeof(l->ranges.v[0]), lines_ranges_compare);
	return r;
}

int lines_open(const struct elf_file *f, clock_fn now_ns, struct lines **ret)
{
	struct lines *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->budget = (struct lines_budget){
		.now_ns = now_ns,
		.left_ns = LINES_TIME_MAX_NS,
		.ranges = LINES_RANGES_MAX,
		.abbrevs = LINES_ABBREVS_MAX,
		.tables = LINES_TABLES_MAX,
		.paths = LINES_PATHS_MAX,
	};
	lines_budget_start(&l->budget);
	r = lines_source_open(&l->source, f, LINES_SECTIONS_MAX);
	if (r == 0 && l->source.dwarf)
		r = index_units(l);
	lines_budget_stop(&l->budget);
	l->budget.exhausted |= l->source.too_large;
	/* If the only result is that a limit was reached, it is kept, too. */
	if (r || (l->n_units == 0 && !l->budget.exhausted)) {
		lines_free(l);
		l = NULL;
	}
	if (r == 0)
		*ret = l;
	return r;
}

void lines_free(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n_units; i++) {
		lines_ranges_fini(&l->units[i].functions);
		lines_ranges_fini(&l->units[i].inlined);
	}
	free(l->units);
	lines_ranges_fini(&l->ranges);
	lines_source_close(&l->source);
	free(l);
}

size_t lines_bytes(const struct lines *l)
{
	return l->source.made.size + l->cap_units * sizeof(l->units[0]) +
	       (LINES_RANGES_MAX - l->budget.ranges) * sizeof(struct lines_range) +
	       (LINES_TABLES_MAX - l->budget.tables) + (LINES_PATHS_MAX - l->budget.paths) +
	       10 * (LINES_ABBREVS_MAX - l->budget.abbrevs);
}

bool lines_is_incomplete(const struct lines *l)
{
	return l->budget.exhausted;
}

static struct lines_unit *unit_at(struct lines *l, uint64_t vaddr)
{
	const struct lines_range *r = lines_ranges_find(&l->ranges, vaddr);

	return r && vaddr < r->hi && r->first < l->n_units ? &l->units[r->first] : NULL;
}

/* Returns the linkage name of a function, or its name. Either may be in the entry that it refers
 * to. */
static const char *function_name(Dwarf_Die *die)
{
	static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name,
					     DW_AT_name};
	static const unsigned int origins[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Die at = *die;
	const char *name = NULL;

	for (size_t i = 0; i < ORIGINS_MAX; i++) {
		Dwarf_Attribute attr, *origin;

		for (size_t k = 0; k < array_size(names); k++) {
			const char *its = dwarf_formstring(dwarf_attr(&at, names[k], &attr));

			/* A linkage name is preferred, also that of an origin. */
			if (its && names[k] != DW_AT_name)
				return its;
			if (its && !name)
				name = its;
		}
		origin = dwarf_attr(&at, origins[0], &attr);
		if (!origin)
			origin = dwarf_attr(&at, origins[1], &attr);
		if (!origin || !dwarf_formref_die(origin, &at))
			break;
	}
	return name;
}

static uint64_t number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attr), &value))
		return 0;
	return value;
}

/* Gets the source position of the call that was replaced by the inlined function die. */
static void position_of_call(const struct lines_unit *u, Dwarf_Die *unit, Dwarf_Die *die,
			     struct unwind_line *ret)
{
	Dwarf_Files *files;
	size_t n;

	ret->file = NULL;
	ret->line = (uint32_t)min_u64(number(die, DW_AT_call_line), UINT32_MAX);
	if (u->has_table && dwarf_getsrcfiles(unit, &files, &n) == 0)
		ret->file = dwarf_filesrc(files, number(die, DW_AT_call_file), NULL, NULL);
}

/* Gets the source position in the innermost function. */
static void position_of_code(const struct lines_unit *u, Dwarf_Die *unit, uint64_t vaddr,
			     struct unwind_line *ret)
{
	Dwarf_Line *row = u->has_table ? dwarf_getsrc_die(unit, vaddr) : NULL;
	int line = 0;

	ret->file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
	ret->line = row && dwarf_lineno(row, &line) == 0 && line > 0 ? (uint32_t)line : 0;
}

/* Finds the inlined functions around vaddr within f, outermost first. */
static size_t find_inlined(const struct lines_unit *u, const struct lines_range *f, uint64_t vaddr,
			   Dwarf_Off found[UNWIND_LINES_MAX - 1])
{
	const struct lines_slice inlined = lines_unit_inlined(u, f);
	size_t n = 0;

	for (size_t i = 0; i < inlined.n && i < LINES_INLINED_MAX; i++) {
		const struct lines_range *r = &inlined.v[i];

		if (vaddr < r->lo || vaddr >= r->hi)
			continue;
		if (n == UNWIND_LINES_MAX - 1)
			break;
		found[n++] = r->die;
	}
	return n;
}

static size_t find(struct lines *l, struct lines_unit *u, uint64_t vaddr,
		   struct unwind_line ret[UNWIND_LINES_MAX])
{
	Dwarf_Off inlined[UNWIND_LINES_MAX - 1];
	const struct lines_range *f;
	Dwarf_Die unit, die;
	size_t n = 0;

	if (!dwarf_offdie(l->source.dwarf, u->die, &unit))
		return 0;
	if (!u->tried) {
		u->has_table = read_table(l, &unit);
		/* If memory cannot be allocated, the functions read so far are used. */
		(void)!lines_unit_read(u, &unit, &l->budget);
	}
	f = lines_ranges_find(&u->functions, vaddr);
	if (f && vaddr < f->hi)
		n = find_inlined(u, f, vaddr, inlined);
	position_of_code(u, &unit, vaddr, &ret[0]);
	for (size_t i = 0; i < n; i++) {
		if (!dwarf_offdie(l->source.dwarf, inlined[n - 1 - i], &die))
			return 0;
		ret[i].function = function_name(&die);
		position_of_call(u, &unit, &die, &ret[i + 1]);
	}
	ret[n].function = NULL;
	if (f && vaddr < f->hi && dwarf_offdie(l->source.dwarf, f->die, &die))
		ret[n].function = function_name(&die);
	return n + 1;
}

size_t lines_find(struct lines *l, uint64_t vaddr, struct unwind_line ret[UNWIND_LINES_MAX])
{
	struct lines_unit *u = unit_at(l, vaddr);
	size_t n;

	/* Over the limit nothing new is read, but what was read can be searched. */
	if (!u || (!u->tried && l->budget.exhausted))
		return 0;
	lines_budget_start(&l->budget);
	n = find(l, u, vaddr, ret);
	lines_budget_stop(&l->budget);
	return n;
}
