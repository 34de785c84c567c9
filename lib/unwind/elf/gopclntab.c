#include "lib/unwind/elf/gopclntab.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/leb128.h"

#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

/* Indexes of the words behind the first eight bytes of the header. */
enum { N_FUNCS, N_FILES, TEXT, N_WORDS = 8 };
#define HEADER_SIZE 8
#define POINTER	    8

/*
 * Words in the runtime's description of a module (moduledata), in all supported versions: the
 * address of the table comes first.
 */
#define MODULE_TEXT (22 * POINTER)
#define MODULE_SIZE (MODULE_TEXT + POINTER)

/*
 * How many places that look like a header are examined in a section. In Go programs with cgo only
 * the table does.
 */
#define CANDIDATES_MAX 4

/* Offsets in a function's record (_func), behind its entry, which has one word. */
#define FUNC_NAME 0
#define FUNC_SP	  12
#define FUNC_END  16

/* Bytes. Generic functions and closures have long names. Longer ones are cut. */
#define NAME_MAX_BYTES 4096
/* The largest stack height that fits into a rule. A function of the runtime claims a gigabyte. */
#define HEIGHT_MAX (INT32_MAX - 8)
/*
 * The limit of steps through pc-value tables, of all functions together: functions can share a
 * table, so few bytes can make many rows.
 */
#define STEPS_MAX ROWS_MAX

static uint64_t word_at(const struct gopclntab *t, size_t at, size_t size)
{
	uint64_t word = 0;

	memcpy(&word, t->bytes + at, size);
	return word;
}

/* Returns true if the table has size bytes at this offset. */
static bool is_within(const struct gopclntab *t, uint64_t at, uint64_t size)
{
	return at <= t->size && size <= t->size - at;
}

int gopclntab_parse(uint8_t *bytes, size_t size, uint64_t text, struct gopclntab *ret)
{
	struct gopclntab t = {.bytes = bytes, .size = size};
	uint64_t words[N_WORDS];
	size_t shift;
	uint64_t n;

	if (size < HEADER_SIZE + sizeof(words) || bytes[4] != 0 || bytes[5] != 0 || bytes[6] == 0 ||
	    bytes[7] != POINTER)
		return -ENODATA;
	memcpy(words, bytes + HEADER_SIZE, sizeof(words));
	switch (word_at(&t, 0, 4)) {
	case MAGIC_1_16:
		shift = 0;
		t.word = POINTER;
		break;
	case MAGIC_1_18:
	case MAGIC_1_20:
		shift = 1;
		t.word = 4;
		t.text = words[TEXT] != 0 ? words[TEXT] : text;
		if (t.text == 0)
			return -ENODATA;
		break;
	default:
		return -ENODATA;
	}
	n = words[N_FUNCS];
	t.quantum = bytes[6];
	/* The tables of units and files, between these, are not used. */
	if (!is_within(&t, words[TEXT + shift], 1) || !is_within(&t, words[TEXT + shift + 3], 1) ||
	    !is_within(&t, words[TEXT + shift + 4], 1) || n > size / t.word / 2 ||
	    !is_within(&t, words[TEXT + shift + 4], (2 * n + 1) * t.word))
		return -ENODATA;
	t.names = words[TEXT + shift];
	t.pcs = words[TEXT + shift + 3];
	t.funcs = words[TEXT + shift + 4];
	t.n = n;
	*ret = t;
	return 0;
}

/* A file, and the relocations that its dynamic linker applies. */
struct file {
	const struct elf_file *elf;
	uint8_t *relocations; /* NULL: there are none */
	size_t n_relocations;
};

static int read_relocations(struct file *f)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f->elf, ".rela.dyn", &shdr);
	size_t size;
	int r;

	if (!scn)
		return 0;
	r = elf_file_contents(f->elf, scn, &shdr, GOPCLNTAB_MAX, &f->relocations, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	f->n_relocations = size / sizeof(Elf64_Rela);
	return 0;
}

/*
 * Returns the address that the dynamic linker writes to vaddr, less the load bias: the addend of
 * the relocation there. 0 if there is none.
 */
static uint64_t relocated(const struct file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->n_relocations; i++) {
		Elf64_Rela rela;

		memcpy(&rela, f->relocations + i * sizeof(rela), sizeof(rela));
		if (rela.r_offset == vaddr)
			return (uint64_t)rela.r_addend;
	}
	return 0;
}

/* Returns the start of the code from the description of the module. 0 if it is unknown. */
static uint64_t text_of_module(const struct file *f, uint64_t table)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f->elf, ".go.module", &shdr);
	uint64_t its_table = 0, text = 0;
	uint8_t *bytes;
	size_t size;

	if (!scn || elf_file_contents(f->elf, scn, &shdr, GOPCLNTAB_MAX, &bytes, &size))
		return 0;
	if (size >= MODULE_SIZE) {
		memcpy(&its_table, bytes, sizeof(its_table));
		memcpy(&text, bytes + MODULE_TEXT, sizeof(text));
	}
	free(bytes);
	if (its_table == 0)
		its_table = relocated(f, shdr.sh_addr);
	if (text == 0)
		text = relocated(f, shdr.sh_addr + MODULE_TEXT);
	return its_table == table ? text : 0;
}

/*
 * Returns the start of the code that the entries of the table at this address are relative to, if
 * it is not in the table's bytes. 0 if it is unknown.
 */
static uint64_t find_text(const struct file *f, uint64_t table)
{
	const uint64_t text = relocated(f, table + HEADER_SIZE + TEXT * POINTER);

	return text != 0 ? text : text_of_module(f, table);
}

static bool is_code(const struct elf_file *f, uint64_t start, uint64_t end)
{
	GElf_Phdr p;

	for (size_t i = 0; i < f->n_phdrs; i++)
		if (gelf_getphdr(f->elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_X &&
		    start >= p.p_vaddr && end - p.p_vaddr <= p.p_memsz)
			return true;
	return false;
}

/* Returns true if the bytes may be the first ones of a table. */
static bool is_header(const uint8_t *bytes)
{
	uint32_t magic;

	memcpy(&magic, bytes, sizeof(magic));
	return (magic == MAGIC_1_16 || magic == MAGIC_1_18 || magic == MAGIC_1_20) &&
	       bytes[4] == 0 && bytes[5] == 0 &&
	       (bytes[6] == 1 || bytes[6] == 2 || bytes[6] == 4) && bytes[7] == POINTER;
}

/* Returns true if the parts have the linker's order, and the functions are code of f. */
static bool is_plausible(const struct gopclntab *t, const struct elf_file *f)
{
	struct gopclntab_function first, last;

	return t->n > 0 && t->names >= HEADER_SIZE && t->names < t->pcs && t->pcs < t->funcs &&
	       gopclntab_function(t, 0, &first) && gopclntab_function(t, t->n - 1, &last) &&
	       first.start <= last.start && is_code(f, first.start, last.end);
}

/*
 * Finds the table in a section that contains other data, too: bytes, the contents of the section at
 * vaddr, which *ret refers to.
 */
static int search(const struct file *f, uint8_t *bytes, size_t size, uint64_t vaddr,
		  struct gopclntab *ret)
{
	size_t candidates = 0;

	for (size_t at = -vaddr % POINTER; at + HEADER_SIZE <= size && candidates < CANDIDATES_MAX;
	     at += POINTER) {
		struct gopclntab t;

		if (!is_header(bytes + at))
			continue;
		candidates++;
		if (gopclntab_parse(bytes + at, size - at, find_text(f, vaddr + at), &t) ||
		    !is_plausible(&t, f->elf))
			continue;
		/* gopclntab_close() frees the bytes. */
		memmove(bytes, bytes + at, size - at);
		t.bytes = bytes;
		*ret = t;
		return 0;
	}
	return -ENODATA;
}

int gopclntab_open(const struct elf_file *f, struct gopclntab *ret)
{
	struct file file = {.elf = f};
	GElf_Shdr shdr, unused;
	bool is_own = true;
	uint8_t *bytes;
	Elf_Scn *scn;
	size_t size;
	int r;

	scn = elf_file_section(f, ".gopclntab", &shdr);
	if (!scn)
		scn = elf_file_section(f, ".data.rel.ro.gopclntab", &shdr);
	if (!scn && elf_file_section(f, ".go.buildinfo", &unused)) {
		scn = elf_file_section(f, ".data.rel.ro", &shdr);
		is_own = false;
	}
	if (!scn)
		return -ENODATA;
	r = elf_file_contents(f, scn, &shdr, GOPCLNTAB_MAX, &bytes, &size);
	if (r)
		return r == -ENOMEM ? r : -ENODATA;
	r = read_relocations(&file);
	if (r == 0)
		r = is_own ? gopclntab_parse(bytes, size, find_text(&file, shdr.sh_addr), ret)
			   : search(&file, bytes, size, shdr.sh_addr, ret);
	if (r)
		free(bytes);
	free(file.relocations);
	return r;
}

void gopclntab_close(struct gopclntab *t)
{
	free(t->bytes);
	t->bytes = NULL;
}

bool gopclntab_function(const struct gopclntab *t, size_t number, struct gopclntab_function *ret)
{
	const size_t entry = t->funcs + 2 * number * t->word;
	const uint64_t start = word_at(t, entry, t->word) + t->text;
	const uint64_t end = word_at(t, entry + 2 * t->word, t->word) + t->text;
	const uint64_t offset = word_at(t, entry + t->word, t->word);
	uint64_t name, sp;
	size_t func;

	if (end <= start || !is_within(t, t->funcs, offset) ||
	    !is_within(t, t->funcs + offset, t->word + FUNC_END))
		return false;
	func = t->funcs + offset + t->word;
	name = word_at(t, func + FUNC_NAME, 4);
	sp = word_at(t, func + FUNC_SP, 4);
	if (!is_within(t, t->names + name, 1) || !is_within(t, t->pcs + sp, 1))
		return false;
	name += t->names;
	*ret = (struct gopclntab_function){
		.start = start,
		.end = end,
		.name = (const char *)t->bytes + name,
		.name_size = strnlen((const char *)t->bytes + name,
				     min_size(t->size - name, NAME_MAX_BYTES)),
		/* Offset 0 means: no table. */
		.sp = sp > 0 ? t->pcs + sp : 0,
	};
	return true;
}

/*
 * Makes the rows of a function from its pc-value table. Each pair has the change of the value
 * (which starts at -1; the sign is the lowest bit) and the length of code. A change of 0 ends the
 * table, except in the first pair.
 */
static int add_function(struct rows_builder *b, const struct gopclntab *t,
			const struct gopclntab_function *f, size_t *steps)
{
	const uint8_t *at = t->bytes + f->sp, *all_end = t->bytes + t->size;
	uint64_t pc = f->start;
	int64_t height = -1;

	while (pc < f->end && (*steps)++ < STEPS_MAX) {
		struct rule rule = {
			.cfa = RULE_CFA_SP,
			.ra_offset = -8,
			.saved = {RULE_SAVED_UNDEFINED, RULE_SAVED_UNDEFINED, RULE_SAVED_UNDEFINED,
				  RULE_SAVED_UNDEFINED, RULE_SAVED_UNDEFINED},
		};
		uint64_t change, size, end;
		int r;

		if (!leb128_read(&at, all_end, &change) || (change == 0 && pc > f->start) ||
		    !leb128_read(&at, all_end, &size) || size == 0 || change > UINT32_MAX ||
		    size > UINT32_MAX)
			return 0;
		height += change & 1 ? -(int64_t)(change >> 1) - 1 : (int64_t)(change >> 1);
		if (height < 0 || height > HEIGHT_MAX)
			return 0;
		end = f->end;
		if (size * t->quantum < end - pc)
			end = pc + size * t->quantum;
		rule.cfa_offset = (int32_t)height + 8;
		r = rows_add(b, pc, end, pc == f->start, &rule);
		if (r)
			return r;
		pc = end;
	}
	return 0;
}

int gopclntab_rows(const struct gopclntab *t, uint64_t base, struct rows *ret)
{
	struct gopclntab_function f;
	struct rows_builder b;
	uint64_t done = base;
	size_t steps = 0;
	int r;

	r = rows_builder_init(&b, base);
	for (size_t i = 0; r == 0 && i < t->n; i++) {
		if (!gopclntab_function(t, i, &f) || f.start < done || f.sp == 0)
			continue;
		done = f.end;
		r = add_function(&b, t, &f, &steps);
	}
	/* Above ROWS_MAX the rows so far are kept. */
	if (r == 0 || r == -E2BIG)
		r = rows_finish(&b, ret);
	rows_builder_fini(&b);
	return r;
}
