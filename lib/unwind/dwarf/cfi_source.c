#include "lib/unwind/dwarf/cfi_source.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/leb128.h"

/* Without the AVX-512 ones x86-64 has 67 registers with a number, aarch64 96. */
#define REGISTERS_MAX 128
/* The nesting of remembered states: gcc and clang use two. */
#define REMEMBER_MAX 16

/*
 * The operands of each instruction: a register (r), a LEB128 number (n), a block with its length
 * (b), one, two or four bytes (1, 2, 4). NULL: no instruction, or DW_CFA_set_loc, which no
 * compiler writes.
 */
static const char *const operands[DW_CFA_high_user + 1] = {
	[DW_CFA_nop] = "",
	[DW_CFA_advance_loc1] = "1",
	[DW_CFA_advance_loc2] = "2",
	[DW_CFA_advance_loc4] = "4",
	[DW_CFA_offset_extended] = "rn",
	[DW_CFA_restore_extended] = "r",
	[DW_CFA_undefined] = "r",
	[DW_CFA_same_value] = "r",
	[DW_CFA_register] = "rr",
	[DW_CFA_remember_state] = "",
	[DW_CFA_restore_state] = "",
	[DW_CFA_def_cfa] = "rn",
	[DW_CFA_def_cfa_register] = "r",
	[DW_CFA_def_cfa_offset] = "n",
	[DW_CFA_def_cfa_expression] = "b",
	[DW_CFA_expression] = "rb",
	[DW_CFA_offset_extended_sf] = "rn",
	[DW_CFA_def_cfa_sf] = "rn",
	[DW_CFA_def_cfa_offset_sf] = "n",
	[DW_CFA_val_offset] = "rn",
	[DW_CFA_val_offset_sf] = "rn",
	[DW_CFA_val_expression] = "rb",
	[DW_CFA_GNU_window_save] = "", /* aarch64: negate_ra_state */
	[DW_CFA_GNU_args_size] = "n",
	[DW_CFA_GNU_negative_offset_extended] = "rn",
};

static bool skip(const uint8_t **p, const uint8_t *end, uint64_t n)
{
	if ((uint64_t)(end - *p) < n)
		return false;
	*p += n;
	return true;
}

static bool skip_operand(const uint8_t **p, const uint8_t *end, char operand)
{
	uint64_t n;

	switch (operand) {
	case 'r':
		return leb128_read(p, end, &n) && n < REGISTERS_MAX;
	case 'n':
		return leb128_read(p, end, &n);
	case 'b':
		return leb128_read(p, end, &n) && skip(p, end, n);
	default:
		return skip(p, end, (uint64_t)(operand - '0'));
	}
}

/*
 * What DW_CFA_remember_state costs libdw, in bytes of program: libdw allocates and copies the rules
 * of all registers, which takes as long as this many one-byte instructions.
 */
#define WORK_REMEMBER 64
/* What a row costs libdw in addition to the execution of the program, in bytes of program. */
#define WORK_ROW 64

/*
 * Returns false if the program must not be executed. *ret_work: the cost of the program for libdw,
 * which executes the program from its start for each row.
 */
static bool check_program(const uint8_t *p, const uint8_t *end, uint64_t *ret_work)
{
	uint64_t rows = 1, row_work = (uint64_t)(end - p) + WORK_ROW;
	unsigned int nested = 0;

	while (p < end) {
		const uint8_t op = *p++;
		const char *o = operands[op & DW_CFA_high_user];

		/* Three instructions have an operand in their own byte. */
		if (op & ~DW_CFA_high_user)
			o = (op & ~DW_CFA_high_user) == DW_CFA_offset ? "n" : "";
		if (!o)
			return false;
		for (; *o != '\0'; o++)
			if (!skip_operand(&p, end, *o))
				return false;
		rows += (op & ~DW_CFA_high_user) == DW_CFA_advance_loc ||
			(op >= DW_CFA_advance_loc1 && op <= DW_CFA_advance_loc4);
		nested += op == DW_CFA_remember_state;
		nested -= op == DW_CFA_restore_state;
		if (nested > REMEMBER_MAX)
			return false;
		if (op == DW_CFA_remember_state)
			row_work += WORK_REMEMBER;
	}
	*ret_work = rows * row_work;
	return true;
}

/*
 * Bytes. Longer entries are malformed: in 4,400 files the longest CIE has 52 bytes, the longest
 * FDE 61 KB.
 */
#define CIE_MAX 256u
#define FDE_MAX (128u << 10)

/* The head of .eh_frame_hdr, in the form that linkers write. */
struct table_head {
	uint8_t version, pointer, count, table; /* DW_EH_PE_* */
	int32_t to_section;			/* relative to this member */
	uint32_t n;
};

/* Both are relative to the head. */
struct table_entry {
	int32_t start, at;
};

static const struct table_head usual_head = {
	.version = 1,
	.pointer = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
	.count = DW_EH_PE_udata4,
	.table = DW_EH_PE_datarel | DW_EH_PE_sdata4,
};

/* The FDE and the CIE of a function. */
struct function {
	Dwarf_FDE fde;
	Dwarf_CIE cie;
	uint64_t end, cie_end; /* offsets in the section */
	const uint8_t *limit;  /* the end of the FDE's bytes */
	uint8_t encoding;      /* DW_EH_PE_*, of the start address */
	size_t width;	       /* bytes of the start address, and of the size */
};

/*
 * Calls dwarf_next_cfi() for an entry of at most max bytes. Returns 0, -1 if it is malformed
 * (*ret_next is set in both cases), or 1 at the end of the section.
 */
static int read_entry(const struct cfi_source *s, uint64_t at, size_t max, uint64_t *ret_next,
		      Dwarf_CFI_Entry *ret)
{
	static const uint8_t ident[EI_NIDENT] = {ELFMAG0,    ELFMAG1,	  ELFMAG2,   ELFMAG3,
						 ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	Elf_Data data = {.d_buf = s->bytes, .d_type = ELF_T_BYTE, .d_version = EV_CURRENT};
	int r;

	if (at >= s->size)
		return 1;
	data.d_size = at + min_size(max, s->size - at);
	*ret_next = at;
	r = dwarf_next_cfi(ident, &data, s->is_eh, at, ret_next, ret);
	return *ret_next <= at ? 1 : r;
}

/* Returns the size of an encoded pointer in bytes. 0: not fixed. */
static size_t width_of(uint8_t encoding)
{
	static const uint8_t widths[8] = {[DW_EH_PE_absptr] = 8,
					  [DW_EH_PE_udata2] = 2,
					  [DW_EH_PE_udata4] = 4,
					  [DW_EH_PE_udata8] = 8};

	return widths[encoding & 7];
}

/* Reads how entries of this CIE encode addresses. Returns false if it is not supported. */
static bool read_encoding(const Dwarf_CIE *cie, uint8_t *ret)
{
	const uint8_t *p = cie->augmentation_data;

	*ret = DW_EH_PE_absptr;
	if (cie->augmentation[0] == '\0')
		return true;
	/* Without 'z': only compilers before 2000 wrote such augmentations. */
	if (cie->augmentation[0] != 'z')
		return false;
	for (const char *a = cie->augmentation + 1; *a; a++) {
		if (*a == 'S' || *a == 'B')
			continue;
		if (p >= cie->initial_instructions_end)
			return false;
		if (*a == 'R')
			*ret = *p;
		else if (*a == 'P' && width_of(*p) > 0)
			p += width_of(*p);
		else if (*a != 'L')
			return false;
		p++;
	}
	return true;
}

static bool read_function(const struct cfi_source *s, uint64_t at, struct function *ret)
{
	Dwarf_CFI_Entry fde, cie;

	if (read_entry(s, at, FDE_MAX, &ret->end, &fde) || dwarf_cfi_cie_p(&fde) ||
	    read_entry(s, fde.fde.CIE_pointer, CIE_MAX, &ret->cie_end, &cie) ||
	    !dwarf_cfi_cie_p(&cie) || !read_encoding(&cie.cie, &ret->encoding))
		return false;
	ret->fde = fde.fde;
	ret->cie = cie.cie;
	ret->limit = fde.fde.end;
	ret->width = width_of(ret->encoding);
	return ret->width > 0 && (size_t)(ret->limit - ret->fde.start) >= 2 * ret->width;
}

/* Reads the start address of a function. Returns false if it is relative to an unknown base. */
static bool read_start(const struct cfi_source *s, const struct function *f, uint64_t *ret)
{
	const unsigned int unused = 64 - 8 * (unsigned int)f->width;
	uint64_t value = 0;

	memcpy(&value, f->fde.start, f->width);
	if (f->encoding & DW_EH_PE_signed)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	if ((f->encoding & 0xf0) == DW_EH_PE_pcrel)
		value += s->vaddr + (uint64_t)(f->fde.start - s->bytes);
	else if ((f->encoding & 0xf0) != DW_EH_PE_absptr)
		return false;
	*ret = value;
	return true;
}

/* Reads the linker's search table. Returns false if there is none in the usual form. */
static bool read_table(struct cfi_source *s, const struct elf_file *f)
{
	struct table_entry entry;
	struct table_head head;
	uint8_t *bytes = NULL;
	GElf_Phdr phdr;

	if (!elf_file_phdr(f, PT_GNU_EH_FRAME, &phdr) || phdr.p_filesz < sizeof(head) ||
	    elf_file_read(f, phdr.p_offset, phdr.p_filesz, CFI_SECTION_MAX, &bytes))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (memcmp(&head, &usual_head, offsetof(struct table_head, to_section)) == 0 &&
	    head.n <= CFI_FDES_MAX && head.n <= (phdr.p_filesz - sizeof(head)) / sizeof(entry))
		s->entries = calloc(head.n, sizeof(*s->entries));
	for (; s->entries && s->n < head.n; s->n++) {
		struct cfi_entry *e = &s->entries[s->n];

		memcpy(&entry, bytes + sizeof(head) + s->n * sizeof(entry), sizeof(entry));
		e->start = phdr.p_vaddr + (uint64_t)(int64_t)entry.start;
		e->at = phdr.p_vaddr + (uint64_t)(int64_t)entry.at - s->vaddr;
		if (s->n > 0 && e->start <= e[-1].start)
			break;
	}
	free(bytes);
	return s->n > 0 && s->n == head.n;
}

static int compare(const void *a, const void *b)
{
	const struct cfi_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* Reads all entries, one after the other, and sorts them. */
static int read_entries(struct cfi_source *s)
{
	size_t cap = s->n, n = 0;
	uint64_t next;
	int r;

	s->n = 0;
	for (uint64_t at = 0; s->n < CFI_FDES_MAX; at = next) {
		struct cfi_entry entry = {.at = at};
		struct function function;
		Dwarf_CFI_Entry unused;

		if (read_entry(s, at, SIZE_MAX, &next, &unused) > 0)
			break;
		if (!read_function(s, at, &function) || !read_start(s, &function, &entry.start))
			continue;
		r = array_grow(s->entries, s->n, cap);
		if (r)
			return r;
		s->entries[s->n++] = entry;
	}
	if (s->n > 0)
		qsort(s->entries, s->n, sizeof(*s->entries), compare);
	for (size_t i = 0; i < s->n; i++)
		if (n == 0 || s->entries[n - 1].start != s->entries[i].start)
			s->entries[n++] = s->entries[i];
	s->n = n;
	return 0;
}

/* Finds .eh_frame in a file without section headers. It is read up to the end of its segment. */
static int eh_frame_by_phdr(struct cfi_source *s, const struct elf_file *f)
{
	struct table_head head;
	GElf_Phdr phdr;
	uint64_t skip;

	if (!elf_file_phdr(f, PT_GNU_EH_FRAME, &phdr) || phdr.p_filesz < sizeof(head) ||
	    elf_file_pread(f->fd, &head, sizeof(head), phdr.p_offset) ||
	    memcmp(&head, &usual_head, offsetof(struct table_head, count)) != 0)
		return -ENODATA;
	s->vaddr = phdr.p_vaddr + offsetof(struct table_head, to_section) +
		   (uint64_t)(int64_t)head.to_section;
	for (size_t i = 0; i < f->n_phdrs; i++) {
		if (!gelf_getphdr(f->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    s->vaddr < phdr.p_vaddr || s->vaddr - phdr.p_vaddr >= phdr.p_filesz ||
		    phdr.p_offset > f->size)
			continue;
		skip = s->vaddr - phdr.p_vaddr;
		s->size = phdr.p_filesz - skip;
		return elf_file_read(f, phdr.p_offset + skip, s->size, CFI_SECTION_MAX, &s->bytes);
	}
	return -ENODATA;
}

int cfi_source_open(struct cfi_source *s, const struct elf_file *f, bool is_eh)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_file_section(f, is_eh ? ".eh_frame" : ".debug_frame", &shdr);
	int r = -ENODATA;

	memset(s, 0, sizeof(*s));
	s->is_eh = is_eh;
	if (scn) {
		s->vaddr = shdr.sh_addr;
		r = elf_file_contents(f, scn, &shdr, CFI_SECTION_MAX, &s->bytes, &s->size);
	} else if (is_eh) {
		r = eh_frame_by_phdr(s, f);
	}
	if (r == 0 && (!is_eh || !read_table(s, f)))
		r = read_entries(s);
	return r == -ENOMEM ? r : 0;
}

void cfi_source_close(struct cfi_source *s)
{
	free(s->entries);
	free(s->bytes);
	memset(s, 0, sizeof(*s));
}

/* Checks both programs, and subtracts from *work what libdw will execute for this function. */
static bool take_work(const struct function *f, uint64_t *work)
{
	const uint8_t *p = f->fde.start + 2 * f->width;
	uint64_t size, needed;

	if (f->cie.augmentation[0] == 'z') {
		if (!leb128_read(&p, f->limit, &size) || size > (uint64_t)(f->limit - p))
			return false;
		p += size;
	}
	if (!check_program(f->cie.initial_instructions, f->cie.initial_instructions_end, &needed) ||
	    !check_program(p, f->limit, &needed) || needed > *work)
		return false;
	*work -= needed;
	return true;
}

/*
 * Writes the id of a CIE (distance 0), or the distance from an FDE back to its CIE, in the form
 * of .eh_frame. libdw reads a CIE of .debug_frame in this form, too.
 */
static void put_id(uint8_t *entry, uint64_t distance)
{
	uint32_t length;
	size_t at, size;

	memcpy(&length, entry, sizeof(length));
	at = length == UINT32_MAX ? 12 : 4;
	size = length == UINT32_MAX ? 8 : 4;
	if (distance > 0)
		distance += at;
	memcpy(entry + at, &distance, size);
}

/*
 * Reads the function of the entry at *at. If its size is 0, reads that of the next entry, and sets
 * *at to it: compilers write such an entry for a function without an instruction, and lld's table
 * then lacks the function that follows at the same address.
 */
static bool read_not_empty(const struct cfi_source *s, uint64_t *at, struct function *ret)
{
	uint64_t size = 0;

	if (!read_function(s, *at, ret))
		return false;
	memcpy(&size, ret->fde.start + ret->width, ret->width);
	if (size > 0)
		return true;
	*at = ret->end;
	return read_function(s, *at, ret);
}

int cfi_function_open(struct cfi_function *c, const struct cfi_source *s, size_t n, uint64_t *work)
{
	uint64_t at = s->entries[n].at;
	struct made_section section = {.name = ".eh_frame"};
	struct function f;
	size_t cie_size;
	int r;

	memset(c, 0, sizeof(*c));
	if (!read_not_empty(s, &at, &f) || !take_work(&f, work))
		return -ENODATA;
	cie_size = f.cie_end - f.fde.CIE_pointer;
	section.size = cie_size + (f.end - at);
	section.addr = s->vaddr + at - cie_size;
	r = made_elf_open(&c->elf, &section, 1);
	if (r)
		return r;
	memcpy(section.bytes, s->bytes + f.fde.CIE_pointer, cie_size);
	memcpy(section.bytes + cie_size, s->bytes + at, f.end - at);
	put_id(section.bytes, 0);
	put_id(section.bytes + cie_size, cie_size);
	c->cfi = dwarf_getcfi_elf(c->elf.elf);
	if (c->cfi)
		return 0;
	cfi_function_close(c);
	return -ENODATA;
}

void cfi_function_close(struct cfi_function *c)
{
	if (c->cfi)
		(void)dwarf_cfi_end(c->cfi);
	made_elf_close(&c->elf);
	memset(c, 0, sizeof(*c));
}
