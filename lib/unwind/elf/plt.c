#include "lib/unwind/elf/plt.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/buf.h"
#include "lib/unwind/cpu.h"

static const char *const section_names[PLT_SECTIONS] = {".plt", ".plt.sec", ".plt.got", ".plt.bnd",
							".iplt"};

/* A slot of the GOT that the dynamic linker fills with the address of a function. */
struct slot {
	uint64_t at;	   /* vaddr */
	uint32_t symbol;   /* index in .dynsym; 0: none */
	uint64_t resolver; /* the function that chooses the function at run time, if symbol is 0 */
};

/* What plt_load() reads, and makes. */
struct loading {
	const struct symbols *symbols;
	struct slot *slots; /* sorted by at */
	size_t n_slots, cap_slots;
	Elf64_Sym *dynsym;
	size_t n_dynsym;
	char *dynstr;
	size_t dynstr_size;
	struct plt_stub *stubs;
	size_t n, cap;
	struct buf names;
};

void plt_find(struct plt *p, const struct elf_file *f)
{
	GElf_Shdr shdr;

	for (size_t i = 0; i < PLT_SECTIONS; i++) {
		if (!elf_file_section(f, section_names[i], &shdr) || shdr.sh_type != SHT_PROGBITS ||
		    shdr.sh_size > UINT64_MAX - shdr.sh_addr)
			continue;
		p->sections[p->n_sections].start = shdr.sh_addr;
		p->sections[p->n_sections++].end = shdr.sh_addr + shdr.sh_size;
	}
}

bool plt_covers(const struct plt *p, uint64_t vaddr)
{
	for (size_t i = 0; i < p->n_sections; i++)
		if (vaddr >= p->sections[i].start && vaddr < p->sections[i].end)
			return true;
	return false;
}

static int read_slots(struct loading *l, const struct elf_file *f, const char *section)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f, section, &shdr);
	uint8_t *bytes;
	size_t size;
	int r;

	if (!scn || shdr.sh_type != SHT_RELA)
		return 0;
	r = elf_file_contents(f, scn, &shdr, PLT_TABLE_MAX, &bytes, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	for (size_t at = 0; size - at >= sizeof(Elf64_Rela) && l->n_slots < PLT_SLOTS_MAX && r == 0;
	     at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;
		uint32_t type;

		memcpy(&rela, bytes + at, sizeof(rela));
		type = (uint32_t)ELF64_R_TYPE(rela.r_info);
		if (type != CPU_RELOCATION_JUMP_SLOT && type != CPU_RELOCATION_GLOB_DAT &&
		    type != CPU_RELOCATION_IRELATIVE)
			continue;
		r = array_grow(l->slots, l->n_slots, l->cap_slots);
		if (r == 0)
			l->slots[l->n_slots++] = (struct slot){
				.at = rela.r_offset,
				.symbol = (uint32_t)ELF64_R_SYM(rela.r_info),
				.resolver = (uint64_t)rela.r_addend,
			};
	}
	free(bytes);
	return r;
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

static int read_dynamic_symbols(struct loading *l, const struct elf_file *f)
{
	GElf_Shdr shdr, strings_shdr;
	Elf_Scn *scn = elf_file_section_of_type(f, SHT_DYNSYM, &shdr), *strings;
	uint8_t *bytes;
	size_t size;
	int r;

	strings = scn ? elf_getscn(f->elf, shdr.sh_link) : NULL;
	if (!strings || !gelf_getshdr(strings, &strings_shdr) || strings_shdr.sh_type != SHT_STRTAB)
		return 0;
	r = elf_file_contents(f, strings, &strings_shdr, PLT_TABLE_MAX, &bytes, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	bytes[size - 1] = '\0';
	l->dynstr = (char *)bytes;
	l->dynstr_size = size;
	r = elf_file_contents(f, scn, &shdr, PLT_TABLE_MAX, &bytes, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	l->dynsym = (Elf64_Sym *)(void *)bytes;
	l->n_dynsym = size / sizeof(*l->dynsym);
	return 0;
}

/* Returns the name of the function whose address is in the slot at vaddr. NULL: it is unknown. */
static const char *name_of(const struct loading *l, uint64_t vaddr)
{
	const size_t i = array_upper_bound(l->slots, l->n_slots, at, vaddr);
	const struct slot *slot = i > 0 && l->slots[i - 1].at == vaddr ? &l->slots[i - 1] : NULL;
	const char *name = NULL;
	uint64_t offset;

	if (!slot)
		return NULL;
	if (slot->symbol == 0) {
		if (!symbols_find(l->symbols, slot->resolver, &name, &offset) || offset != 0)
			return NULL;
	} else if (slot->symbol < l->n_dynsym && l->dynsym[slot->symbol].st_name < l->dynstr_size) {
		name = l->dynstr + l->dynsym[slot->symbol].st_name;
	}
	return name && name[0] != '\0' ? name : NULL;
}

/*
 * Adds a stub, unless its name is NULL or has no room. Its size is an upper bound: where a stub
 * ends is known when the next one begins. Returns 0 or -ENOMEM.
 */
static int add_stub(struct loading *l, uint64_t start, uint32_t size, const char *name)
{
	static const char suffix[] = "@plt";
	const size_t at = l->names.len, length = name ? strnlen(name, SYMBOLS_NAME_MAX) : 0;
	int r;

	if (length == 0 || length + sizeof(suffix) > l->names.max - at)
		return 0;
	r = array_grow(l->stubs, l->n, l->cap);
	if (r == 0)
		r = buf_add(&l->names, name, length);
	if (r == 0)
		r = buf_add(&l->names, suffix, sizeof(suffix));
	if (r == 0)
		l->stubs[l->n++] = (struct plt_stub){
			.start = start,
			.size = size,
			.name = (uint32_t)at,
		};
	return r;
}

/* Ends the stub that was added last at vaddr, where another one begins. */
static void end_last_stub(struct loading *l, uint64_t vaddr)
{
	struct plt_stub *last = l->n > 0 ? &l->stubs[l->n - 1] : NULL;

	if (last && vaddr > last->start && vaddr - last->start < last->size)
		last->size = (uint32_t)(vaddr - last->start);
}

static int read_stubs(struct loading *l, const struct elf_file *f, const char *section)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f, section, &shdr);
	size_t size, step;
	uint32_t stub;
	uint8_t *code;
	uint64_t slot;
	int r;

	if (!scn || shdr.sh_type != SHT_PROGBITS)
		return 0;
	r = elf_file_contents(f, scn, &shdr, PLT_TABLE_MAX, &code, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	for (size_t at = 0; at < size && r == 0; at += step) {
		const uint64_t vaddr = shdr.sh_addr + at;

		step = CPU_PLT_ALIGN;
		stub = cpu_plt_stub(code + at, size - at, vaddr, &slot);
		if (stub == 0)
			continue;
		step = CPU_PLT_STUB_MIN;
		end_last_stub(l, vaddr);
		r = add_stub(l, vaddr, (uint32_t)min_size(size - at, stub), name_of(l, slot));
	}
	free(code);
	return r;
}

static int compare_stubs(const void *a, const void *b)
{
	const struct plt_stub *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int load(struct loading *l, const struct elf_file *f)
{
	int r = read_slots(l, f, ".rela.plt");

	if (r == 0)
		r = read_slots(l, f, ".rela.dyn");
	if (r == 0)
		r = read_dynamic_symbols(l, f);
	if (l->n_slots > 0)
		qsort(l->slots, l->n_slots, sizeof(*l->slots), compare_slots);
	for (size_t i = 0; i < PLT_SECTIONS && r == 0; i++)
		r = read_stubs(l, f, section_names[i]);
	if (l->n > 0)
		qsort(l->stubs, l->n, sizeof(*l->stubs), compare_stubs);
	return r;
}

int plt_load(struct plt *p, const struct elf_file *f, const struct symbols *symbols)
{
	struct loading l = {.symbols = symbols};
	int r;

	if (p->is_loaded)
		return 0;
	buf_init(&l.names, PLT_NAMES_MAX);
	r = load(&l, f);
	if (r == 0) {
		p->stubs = l.stubs;
		p->n = l.n;
		p->names = l.names.data;
		p->bytes = l.cap * sizeof(*l.stubs) + l.names.cap;
		p->is_loaded = true;
	} else {
		free(l.stubs);
		buf_fini(&l.names);
	}
	free(l.slots);
	free(l.dynsym);
	free(l.dynstr);
	return r;
}

void plt_drop(struct plt *p)
{
	free(p->stubs);
	free(p->names);
	p->stubs = NULL;
	p->names = NULL;
	p->n = 0;
	p->bytes = 0;
	p->is_loaded = false;
}

bool plt_name(const struct plt *p, uint64_t vaddr, const char **ret_name, uint64_t *ret_offset)
{
	const size_t i = array_upper_bound(p->stubs, p->n, start, vaddr);
	const struct plt_stub *stub = i > 0 ? &p->stubs[i - 1] : NULL;

	if (!stub || vaddr - stub->start >= stub->size)
		return false;
	*ret_name = p->names + stub->name;
	*ret_offset = vaddr - stub->start;
	return true;
}
