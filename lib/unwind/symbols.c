#include "lib/unwind/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/gopclntab.h"

/*
 * How far back a symbol is looked for that reaches over later, smaller ones
 * (labels with a size inside of assembly functions).
 */
#define NESTED_MAX 8
/* Two tables whose names do not overlap. */
#define NAMES_MAX (2u * SYMBOLS_SECTION_MAX)

/* How an address's name is chosen: the smallest wins. */
enum rank { RANK_GLOBAL, RANK_WEAK, RANK_LOCAL, RANK_UNTYPED };

struct candidate {
	struct symbol s;
	uint32_t rank;
	uint32_t name_size;
	const char *name; /* in one of the tables' strings */
};

struct table_source {
	uint8_t *symbols;
	size_t size;
	char *strings;
	size_t strings_size;
};

enum { SYMTAB, DYNSYM, N_TABLES };

struct collector {
	struct table_source tables[N_TABLES];
	struct candidate *v;
	size_t n;
	size_t cap;
	uint64_t base;
	/* Executable segments, where untyped symbols may be functions. */
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

static Elf_Scn *find_table(const struct elf_file *f, uint32_t type,
			   GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	size_t n = 0;

	while ((scn = elf_nextscn(f->elf, scn)) && n++ < ELF_SECTIONS_MAX) {
		if (gelf_getshdr(scn, ret) && ret->sh_type == type)
			return scn;
	}
	return NULL;
}

bool symbols_has_symtab(const struct elf_file *f)
{
	GElf_Shdr shdr;

	return find_table(f, SHT_SYMTAB, &shdr) &&
	       shdr.sh_size > sizeof(Elf64_Sym);
}

/* Reads a table and its strings. Leaves t empty if it can't be read. */
static int load_table(const struct elf_file *f, uint32_t type,
		      struct table_source *t)
{
	GElf_Shdr shdr;
	GElf_Shdr strings;
	uint8_t *bytes = NULL;
	Elf_Scn *scn = find_table(f, type, &shdr);
	Elf_Scn *strings_scn;
	int r;

	if (!scn || shdr.sh_entsize != sizeof(Elf64_Sym))
		return 0;
	strings_scn = elf_getscn(f->elf, shdr.sh_link);
	if (!strings_scn || !gelf_getshdr(strings_scn, &strings) ||
	    strings.sh_type != SHT_STRTAB)
		return 0;
	r = elf_file_contents(f, scn, &shdr, SYMBOLS_SECTION_MAX, &t->symbols,
			      &t->size);
	if (r)
		return r == -ENOMEM ? r : 0;
	r = elf_file_contents(f, strings_scn, &strings, SYMBOLS_SECTION_MAX,
			      &bytes, &t->strings_size);
	if (r) {
		t->size = 0;
		return r == -ENOMEM ? r : 0;
	}
	t->strings = (char *)bytes;
	return 0;
}

static bool is_executable(const struct collector *c, uint64_t vaddr)
{
	for (size_t i = 0; i < c->n_exec; i++) {
		if (vaddr >= c->exec[i].start && vaddr < c->exec[i].end)
			return true;
	}
	return false;
}

static int add(struct collector *c, const struct candidate *new)
{
	if (array_grow(c->v, c->n, c->cap) < 0)
		return -ENOMEM;
	c->v[c->n++] = *new;
	return 0;
}

/*
 * Marks between code and data, which aarch64 has: "$x" and "$d", and either
 * with something behind a dot. ELF for the Arm 64-bit Architecture, 5.5.3.
 */
static bool is_mapping_symbol(const char *name, size_t n)
{
	return n >= 2 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd') &&
	       (n == 2 || name[2] == '.');
}

/* Is this a function's symbol? Then *ret describes it. */
static bool read_symbol(const struct collector *c, const Elf64_Sym *sym,
			const struct table_source *t, struct candidate *ret)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);
	unsigned int bind = ELF64_ST_BIND(sym->st_info);
	const char *at;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS ||
	    sym->st_shndx == SHN_COMMON || sym->st_name >= t->strings_size)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (sym->st_value < c->base || sym->st_value - c->base > UINT32_MAX ||
	    !is_executable(c, sym->st_value))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->s.start = (uint32_t)(sym->st_value - c->base);
	ret->s.size =
		(uint32_t)min_u64(sym->st_size, UINT32_MAX - ret->s.start);
	if (type == STT_NOTYPE)
		ret->rank = RANK_UNTYPED;
	else if (bind == STB_LOCAL)
		ret->rank = RANK_LOCAL;
	else
		ret->rank = bind == STB_WEAK ? RANK_WEAK : RANK_GLOBAL;
	ret->name = t->strings + sym->st_name;
	ret->name_size = (uint32_t)strnlen(
		ret->name,
		min_size(t->strings_size - sym->st_name, SYMBOLS_NAME_MAX));
	if (type == STT_NOTYPE && is_mapping_symbol(ret->name, ret->name_size))
		return false;
	/* A version ("memcpy@@GLIBC_2.14") is no part of the name. */
	at = memchr(ret->name, '@', ret->name_size);
	if (at && at > ret->name)
		ret->name_size = (uint32_t)(at - ret->name);
	return ret->name_size > 0;
}

static int collect(struct collector *c, const struct table_source *t)
{
	size_t n = t->size / sizeof(Elf64_Sym);

	for (size_t i = 1; i < n && c->n < SYMBOLS_MAX; i++) {
		struct candidate new;
		Elf64_Sym sym;
		int r;

		memcpy(&sym, t->symbols + i * sizeof(sym), sizeof(sym));
		if (!read_symbol(c, &sym, t, &new))
			continue;
		r = add(c, &new);
		if (r)
			return r;
	}
	return 0;
}

/* The functions of a Go program without .symtab, by its own table. */
static int collect_go(struct collector *c, const struct gopclntab *t)
{
	struct gopclntab_function f;
	int r = 0;

	for (size_t i = 0; i < t->n && c->n < SYMBOLS_MAX && r == 0; i++) {
		if (!gopclntab_function(t, i, &f) || f.name_size == 0 ||
		    f.start < c->base || f.end - c->base > UINT32_MAX)
			continue;
		r = add(c, &(struct candidate){
				   .s.start = (uint32_t)(f.start - c->base),
				   .s.size = (uint32_t)(f.end - f.start),
				   .rank = RANK_LOCAL,
				   .name = f.name,
				   .name_size = (uint32_t)f.name_size});
	}
	return r;
}

/* By address, the best name for it first. */
static int compare(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	if (x->s.start != y->s.start)
		return x->s.start < y->s.start ? -1 : 1;
	if ((x->rank == RANK_UNTYPED) != (y->rank == RANK_UNTYPED))
		return x->rank == RANK_UNTYPED ? 1 : -1;
	if ((x->s.size == 0) != (y->s.size == 0))
		return x->s.size == 0 ? 1 : -1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->name_size != y->name_size)
		return x->name_size < y->name_size ? -1 : 1;
	return memcmp(x->name, y->name, x->name_size);
}

/*
 * Keeps one candidate an address, and no untyped one inside of a function;
 * adds up the names. The candidates are sorted.
 */
static void choose(struct collector *c, size_t *ret_names_size)
{
	size_t names_size = 0;
	uint64_t reach = 0; /* the end of the sized functions so far */
	size_t kept = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct candidate *x = &c->v[i];
		uint64_t end = (uint64_t)x->s.start + x->s.size;

		if (kept > 0 && c->v[kept - 1].s.start == x->s.start)
			continue;
		if (x->rank == RANK_UNTYPED) {
			if (x->s.start < reach)
				continue;
		} else {
			reach = max_u64(reach, end);
		}
		names_size += x->name_size + 1;
		c->v[kept++] = *x;
	}
	c->n = kept;
	*ret_names_size = names_size;
}

static int emit(const struct collector *c, size_t names_size,
		struct symbols *ret)
{
	size_t pos = 0;

	ret->base = c->base;
	if (c->n == 0)
		return 0;
	/* Names may overlap in the file, so that few bytes make up many. */
	if (names_size > NAMES_MAX)
		return 0;
	ret->v = malloc(c->n * sizeof(*ret->v));
	ret->names = malloc(names_size);
	if (!ret->v || !ret->names) {
		symbols_fini(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n; i++) {
		ret->v[i] = c->v[i].s;
		ret->v[i].name = (uint32_t)pos;
		memcpy(ret->names + pos, c->v[i].name, c->v[i].name_size);
		pos += c->v[i].name_size;
		ret->names[pos++] = '\0';
	}
	ret->n = c->n;
	ret->bytes = c->n * sizeof(*ret->v) + names_size;
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

int symbols_load(const struct elf_file *f, const struct elf_file *debug,
		 uint64_t base, struct symbols *ret)
{
	const struct elf_file *symtab = f;
	struct gopclntab go = {0};
	struct collector c;
	size_t names_size;
	int r;

	symbols_init(ret);
	memset(&c, 0, sizeof(c));
	c.base = base;
	find_exec(&c, f);
	if (debug && !symbols_has_symtab(f))
		symtab = debug;
	r = load_table(symtab, SHT_SYMTAB, &c.tables[SYMTAB]);
	if (r == 0)
		r = load_table(f, SHT_DYNSYM, &c.tables[DYNSYM]);
	for (size_t i = 0; i < N_TABLES && r == 0; i++)
		r = collect(&c, &c.tables[i]);
	if (r == 0 && !symbols_has_symtab(symtab) &&
	    gopclntab_open(f, &go) == 0)
		r = collect_go(&c, &go);
	if (r == 0) {
		if (c.n > 0)
			qsort(c.v, c.n, sizeof(*c.v), compare);
		choose(&c, &names_size);
		r = emit(&c, names_size, ret);
	}
	for (size_t i = 0; i < N_TABLES; i++) {
		free(c.tables[i].symbols);
		free(c.tables[i].strings);
	}
	gopclntab_close(&go);
	free(c.v);
	return r;
}

bool symbols_find(const struct symbols *s, uint64_t vaddr,
		  const char **ret_name, uint64_t *ret_offset)
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

		/* One without a size reaches up to the next. */
		if (at - x->start < x->size || (x->size == 0 && i == lo)) {
			*ret_name = s->names + x->name;
			*ret_offset = at - x->start;
			return true;
		}
	}
	return false;
}

bool symbols_range(const struct symbols *s, const char *name,
		   uint64_t *ret_start, uint64_t *ret_end)
{
	const size_t n = strlen(name);

	for (size_t i = 0; i < s->n; i++) {
		const char *found = s->names + s->v[i].name;

		if (s->v[i].size == 0 || strncmp(found, name, n) != 0 ||
		    (found[n] != '\0' && strcmp(found + n, ".abi0") != 0))
			continue;
		*ret_start = s->base + s->v[i].start;
		*ret_end = *ret_start + s->v[i].size;
		return true;
	}
	return false;
}
