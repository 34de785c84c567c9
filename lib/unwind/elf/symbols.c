#include "lib/unwind/elf/symbols.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/elf/gopclntab.h"

/*
 * How many later, smaller symbols a look-up skips to find one that encloses them: assembly
 * functions contain labels with a size.
 */
#define NESTED_MAX 8
/* the names of two tables */
#define NAMES_MAX (2u * SYMBOLS_SECTION_MAX)

/* The rank of a name among those of one address: the smallest is chosen. */
enum rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL, RANK_UNTYPED };

struct collector {
	struct symbols *symbols;
	Elf *table_of; /* the file of the table that is read */
	size_t names_size, names_cap;
	/* executable segments, in which untyped symbols may be functions */
	struct {
		uint64_t start;
		uint64_t end;
	} exec[ELF_PHDRS_MAX];
	size_t n_exec;
};

void symbols_init(struct symbols *s)
{
	memset(s, 0, sizeof(*s));
}

void symbols_fini(struct symbols *s)
{
	free(s->v);
	free(s->names);
	symbols_init(s);
}

bool symbols_has_symtab(const struct elf_file *f)
{
	GElf_Shdr shdr;

	return elf_file_section_of_type(f, SHT_SYMTAB, &shdr) && shdr.sh_size > sizeof(Elf64_Sym);
}

/* Returns the end of the executable segment that has vaddr; 0 if none has. */
static uint64_t segment_end(const struct collector *c, uint64_t vaddr)
{
	for (size_t i = 0; i < c->n_exec; i++) {
		if (vaddr >= c->exec[i].start && vaddr < c->exec[i].end)
			return c->exec[i].end;
	}
	return 0;
}

/*
 * Returns the end of the section that the symbol is defined in. A symbol outside of its section
 * is malformed: end, that of the segment, is returned.
 */
static uint64_t section_end(const struct collector *c, const Elf64_Sym *sym, uint64_t end)
{
	Elf_Scn *scn = elf_getscn(c->table_of, sym->st_shndx);
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || sym->st_value < shdr.sh_addr ||
	    sym->st_value - shdr.sh_addr > shdr.sh_size || shdr.sh_size > end - shdr.sh_addr)
		return end;
	return shdr.sh_addr + shdr.sh_size;
}

/* Makes room for n more symbols, or for as many as SYMBOLS_MAX allows (*ret). */
static int reserve(struct symbols *s, size_t n, size_t *ret)
{
	struct symbol *v;

	n = min_size(n, SYMBOLS_MAX - s->n);
	v = realloc(s->v, (s->n + n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	*ret = n;
	return 0;
}

/* Cuts names at their version ("memcpy@@GLIBC_2.14"), and after SYMBOLS_NAME_MAX bytes. */
static void cut_names(char *names, size_t size)
{
	char *end = names + size;
	char *at = names;

	while ((at = memchr(at, '@', (size_t)(end - at)))) {
		if (at > names && at[-1] != '\0')
			*at = '\0';
		at++;
	}
	for (at = names; end - at > SYMBOLS_NAME_MAX; at++) {
		char *last = memrchr(at, '\0', SYMBOLS_NAME_MAX + 1);

		at = last ? last : at + SYMBOLS_NAME_MAX;
		*at = '\0';
	}
}

/* Appends names, at *ret_offset. Returns 0, -E2BIG or -ENOMEM. */
static int add_names(struct collector *c, const char *bytes, size_t size, size_t *ret_offset)
{
	const size_t needed = c->names_size + size + 1;
	char *names = c->symbols->names;

	if (needed > NAMES_MAX)
		return -E2BIG;
	if (needed > c->names_cap) {
		/* cppcheck-suppress memleakOnRealloc ; c->symbols still has the pointer */
		names = realloc(names, needed + c->names_cap / 2);
		if (!names)
			return -ENOMEM;
		c->symbols->names = names;
		c->names_cap = needed + c->names_cap / 2;
	}
	memcpy(names + c->names_size, bytes, size);
	names[c->names_size + size] = '\0';
	cut_names(names + c->names_size, size);
	*ret_offset = c->names_size;
	c->names_size = needed;
	return 0;
}

/*
 * As add_names(), for a whole string table. Takes *strings over, and sets it to NULL, if it is
 * the first one.
 */
static int add_strings(struct collector *c, char **strings, size_t size, size_t *ret_offset)
{
	if (c->symbols->names)
		return add_names(c, *strings, size, ret_offset);
	(*strings)[size - 1] = '\0';
	cut_names(*strings, size);
	c->symbols->names = *strings;
	c->names_size = c->names_cap = size;
	*strings = NULL;
	*ret_offset = 0;
	return 0;
}

/*
 * True for mapping symbols of aarch64, which mark code and data: "$x" and "$d", also with a
 * suffix behind a dot. Source: ELF for the Arm 64-bit Architecture, 5.5.3.
 */
static bool is_mapping_symbol(const char *name)
{
	return name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
	       (name[2] == '\0' || name[2] == '.');
}

/*
 * Reads a symbol. Returns false if it is not a function's. The names of its table were added last,
 * at names_at.
 */
static bool read_symbol(const struct collector *c, const Elf64_Sym *sym, size_t names_at,
			struct symbol *ret)
{
	const unsigned int type = ELF64_ST_TYPE(sym->st_info);
	const unsigned int bind = ELF64_ST_BIND(sym->st_info);
	const uint64_t base = c->symbols->base, end = segment_end(c, sym->st_value);
	const char *name = c->symbols->names + names_at + sym->st_name;
	uint64_t size = sym->st_size;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || sym->st_shndx == SHN_COMMON ||
	    sym->st_name >= c->names_size - names_at)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_value < base || sym->st_value - base >= UINT32_MAX || end == 0)
		return false;
	if (name[0] == '\0' || (type == STT_NOTYPE && is_mapping_symbol(name)))
		return false;
	ret->no_size = size == 0;
	if (size == 0)
		size = min_u64(section_end(c, sym, end) - sym->st_value, SYMBOLS_NO_SIZE_MAX);
	/* A label at the end of its section names no code. */
	if (size == 0)
		return false;
	ret->start = (uint32_t)(sym->st_value - base);
	ret->size = (uint32_t)min_u64(size, UINT32_MAX - ret->start);
	ret->name = (uint32_t)names_at + sym->st_name;
	if (type == STT_NOTYPE)
		ret->rank = RANK_UNTYPED;
	else if (bind == STB_LOCAL)
		ret->rank = RANK_LOCAL;
	else
		ret->rank = bind == STB_WEAK ? RANK_WEAK : RANK_GLOBAL;
	return true;
}

static int collect(struct collector *c, const uint8_t *table, size_t size, size_t names_at)
{
	struct symbols *s = c->symbols;
	size_t n;
	int r = reserve(s, size / sizeof(Elf64_Sym), &n);

	for (size_t i = 1; r == 0 && i < n; i++) {
		Elf64_Sym sym;

		memcpy(&sym, table + i * sizeof(sym), sizeof(sym));
		s->n += read_symbol(c, &sym, names_at, &s->v[s->n]);
	}
	return r;
}

/* Reads a symbol table and its strings. An unreadable one counts as missing. */
static int collect_table(struct collector *c, const struct elf_file *f, uint32_t type)
{
	uint8_t *table = NULL, *bytes = NULL;
	char *strings;
	GElf_Shdr shdr, strings_shdr;
	size_t size, strings_size, at;
	Elf_Scn *scn = elf_file_section_of_type(f, type, &shdr);
	Elf_Scn *strings_scn;
	int r;

	if (!scn || shdr.sh_entsize != sizeof(Elf64_Sym))
		return 0;
	strings_scn = elf_getscn(f->elf, shdr.sh_link);
	if (!strings_scn || !gelf_getshdr(strings_scn, &strings_shdr) ||
	    strings_shdr.sh_type != SHT_STRTAB)
		return 0;
	c->table_of = f->elf;
	r = elf_file_contents(f, scn, &shdr, SYMBOLS_SECTION_MAX, &table, &size);
	if (r == 0)
		r = elf_file_contents(f, strings_scn, &strings_shdr, SYMBOLS_SECTION_MAX, &bytes,
				      &strings_size);
	strings = (char *)bytes;
	if (r == 0)
		r = add_strings(c, &strings, strings_size, &at);
	free(strings);
	if (r == 0)
		r = collect(c, table, size, at);
	free(table);
	return r == -ENOMEM ? r : 0;
}

/* Reads the functions of a Go program without .symtab, from Go's table. */
static int collect_go(struct collector *c, const struct elf_file *f)
{
	struct symbols *s = c->symbols;
	struct gopclntab_function go;
	struct gopclntab t;
	size_t n, at;
	int r = gopclntab_open(f, &t);

	if (r)
		return r == -ENOMEM ? r : 0;
	r = reserve(s, t.n, &n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (!gopclntab_function(&t, i, &go) || go.name_size == 0 || go.start < s->base ||
		    go.end - s->base > UINT32_MAX)
			continue;
		r = add_names(c, go.name, go.name_size, &at);
		if (r == 0)
			s->v[s->n++] = (struct symbol){.start = (uint32_t)(go.start - s->base),
						       .size = (uint32_t)(go.end - go.start),
						       .name = (uint32_t)at,
						       .rank = RANK_LOCAL};
	}
	gopclntab_close(&t);
	return r == -ENOMEM ? r : 0;
}

/* Returns true if x is preferred to y for the same address. */
static bool is_better(const char *names, const struct symbol *x, const struct symbol *y)
{
	size_t x_size, y_size;

	if ((x->rank == RANK_UNTYPED) != (y->rank == RANK_UNTYPED))
		return y->rank == RANK_UNTYPED;
	if (x->no_size != y->no_size)
		return y->no_size;
	if (x->rank != y->rank)
		return x->rank < y->rank;
	x_size = strlen(names + x->name);
	y_size = strlen(names + y->name);
	if (x_size != y_size)
		return x_size < y_size;
	return memcmp(names + x->name, names + y->name, x_size) < 0;
}

/* Sorts by start: a radix sort by bytes. room has space for n symbols. */
static void sort(struct symbol *v, struct symbol *room, size_t n)
{
	for (unsigned int shift = 0; shift < 32; shift += 8) {
		size_t at[UINT8_MAX + 2] = {0};
		struct symbol *sorted = room;

		for (size_t i = 0; i < n; i++)
			at[(uint8_t)(v[i].start >> shift) + 1]++;
		for (size_t i = 1; i < array_size(at); i++)
			at[i] += at[i - 1];
		for (size_t i = 0; i < n; i++)
			sorted[at[(uint8_t)(v[i].start >> shift)]++] = v[i];
		room = v;
		v = sorted;
	}
}

/* end is above the symbol's start, relative to base. */
static void limit_end(struct symbol *symbol, uint64_t end)
{
	symbol->size = (uint32_t)min_u64(symbol->size, end - symbol->start);
}

/*
 * Keeps one symbol for each address, and no untyped one within a function. Ends those without a
 * size at the next one, and at the end of the function that they are in.
 */
static int choose(struct symbols *s)
{
	struct symbol *room = malloc(s->n * sizeof(*room));
	struct symbol *v = s->v;
	uint64_t reach = 0; /* the end of the functions with a size so far */
	size_t n = 0, kept = 0;

	if (!room)
		return -ENOMEM;
	sort(v, room, s->n);
	free(room);
	for (size_t i = 0; i < s->n; i++) {
		if (n == 0 || v[n - 1].start != v[i].start)
			v[n++] = v[i];
		else if (is_better(s->names, &v[i], &v[n - 1]))
			v[n - 1] = v[i];
	}
	for (size_t i = 0; i < n; i++) {
		if (v[i].rank == RANK_UNTYPED && v[i].start < reach)
			continue;
		if (kept > 0 && v[kept - 1].no_size)
			limit_end(&v[kept - 1], v[i].start);
		if (v[i].no_size && v[i].start < reach)
			limit_end(&v[i], reach);
		if (v[i].rank != RANK_UNTYPED && !v[i].no_size)
			reach = max_u64(reach, (uint64_t)v[i].start + v[i].size);
		v[kept++] = v[i];
	}
	assert(kept > 0); /* the first symbol */
	v = realloc(s->v, kept * sizeof(*v));
	if (v)
		s->v = v;
	s->n = kept;
	return 0;
}

static void find_exec(struct collector *c, const struct elf_file *f)
{
	for (size_t i = 0; i < f->n_phdrs; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_LOAD ||
		    !(p.p_flags & PF_X) || p.p_memsz > UINT64_MAX - p.p_vaddr)
			continue;
		c->exec[c->n_exec].start = p.p_vaddr;
		c->exec[c->n_exec++].end = p.p_vaddr + p.p_memsz;
	}
}

int symbols_load(const struct elf_file *f, const struct elf_file *debug, uint64_t base,
		 struct symbols *ret)
{
	const struct elf_file *symtab = f;
	struct collector c = {.symbols = ret};
	int r;

	symbols_init(ret);
	ret->base = base;
	find_exec(&c, f);
	if (debug && !symbols_has_symtab(f))
		symtab = debug;
	r = collect_table(&c, symtab, SHT_SYMTAB);
	if (r == 0)
		r = collect_table(&c, f, SHT_DYNSYM);
	if (r == 0 && !symbols_has_symtab(symtab))
		r = collect_go(&c, f);
	if (r == 0 && ret->n > 0)
		r = choose(ret);
	if (r)
		symbols_fini(ret);
	else
		ret->bytes = ret->n * sizeof(*ret->v) + c.names_cap;
	return r;
}

bool symbols_find(const struct symbols *s, uint64_t vaddr, const char **ret_name,
		  uint64_t *ret_offset)
{
	size_t lo = 0;
	size_t hi = s->n;
	uint32_t at;

	if (vaddr < s->base || vaddr - s->base > UINT32_MAX)
		return false;
	at = (uint32_t)(vaddr - s->base);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].start <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i > 0 && lo - i < NESTED_MAX; i--) {
		const struct symbol *x = &s->v[i - 1];

		if (at - x->start < x->size) {
			*ret_name = s->names + x->name;
			*ret_offset = at - x->start;
			return true;
		}
	}
	return false;
}

void symbols_bound(struct symbols *s, uint64_t (*next)(const void *ctx, uint64_t vaddr),
		   const void *ctx)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].no_size)
			limit_end(&s->v[i], next(ctx, s->base + s->v[i].start) - s->base);
}

bool symbols_range(const struct symbols *s, const char *name, uint64_t *ret_start,
		   uint64_t *ret_end)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < s->n; i++) {
		const char *found = s->names + s->v[i].name;

		if (s->v[i].no_size || strncmp(found, name, n) != 0 ||
		    (found[n] != '\0' && strcmp(found + n, ".abi0") != 0))
			continue;
		*ret_start = s->base + s->v[i].start;
		*ret_end = *ret_start + s->v[i].size;
		return true;
	}
	return false;
}
