#include "lib/unwind/cfi_source.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cfi.h"
#include "lib/unwind/cpu.h"

/*
 * The file: header, section, section names, section headers. The section's
 * bytes are moved into it, so that what is blanked out is blanked for libdw.
 */
static int source_build(struct cfi_source *s, uint8_t *bytes, size_t size,
			uint64_t vaddr, bool is_eh)
{
	static const char eh_names[] = "\0.eh_frame\0.shstrtab";
	static const char debug_names[] = "\0.debug_frame\0.shstrtab";
	const char *names = is_eh ? eh_names : debug_names;
	size_t names_size = is_eh ? sizeof(eh_names) : sizeof(debug_names);
	size_t names_at = sizeof(Elf64_Ehdr) + size;
	size_t shdrs_at = align_up(names_at + names_size, 8);
	size_t file_size = shdrs_at + 3 * sizeof(Elf64_Shdr);
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			    ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = CPU_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_shoff = shdrs_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};
	Elf64_Shdr shdrs[3] = {
		[1] = {.sh_name = 1,
		       .sh_type = SHT_PROGBITS,
		       .sh_addr = vaddr,
		       .sh_offset = sizeof(Elf64_Ehdr),
		       .sh_size = size,
		       .sh_addralign = 1},
		[2] = {.sh_name = (Elf64_Word)strlen(names + 1) + 2,
		       .sh_type = SHT_STRTAB,
		       .sh_offset = names_at,
		       .sh_size = names_size,
		       .sh_addralign = 1},
	};

	s->file = calloc(1, file_size);
	if (!s->file)
		return -ENOMEM;
	memcpy(s->file, &ehdr, sizeof(ehdr));
	memcpy(s->file + sizeof(ehdr), bytes, size);
	memcpy(s->file + names_at, names, names_size);
	memcpy(s->file + shdrs_at, shdrs, sizeof(shdrs));
	s->section = (struct cfi_section){s->file + sizeof(ehdr), size, vaddr,
					  is_eh};
	s->elf = elf_memory((char *)s->file, file_size);
	return s->elf ? 0 : -ENOMEM;
}

/* Once the section has been checked. Without a result there are no rows. */
void cfi_source_open(struct cfi_source *s)
{
	if (s->section.is_eh) {
		s->cfi = dwarf_getcfi_elf(s->elf);
	} else {
		s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
		s->cfi = s->dwarf ? dwarf_getcfi(s->dwarf) : NULL;
	}
}

void cfi_source_close(struct cfi_source *s)
{
	if (s->dwarf)
		(void)dwarf_end(s->dwarf);
	else if (s->cfi)
		(void)dwarf_cfi_end(s->cfi);
	if (s->elf)
		(void)elf_end(s->elf);
	free(s->file);
	memset(s, 0, sizeof(*s));
}

/* The bytes of .eh_frame up to its terminator. */
static size_t eh_frame_size(const uint8_t *p, size_t size)
{
	size_t pos = 0;

	while (size - pos >= 4) {
		uint32_t length;

		memcpy(&length, p + pos, sizeof(length));
		if (length == 0 || length == UINT32_MAX ||
		    length > size - pos - 4)
			break;
		pos += 4 + length;
	}
	return pos;
}

/* .eh_frame of a file without section headers, by PT_GNU_EH_FRAME. */
static int eh_frame_by_phdr(const struct elf_file *f, uint8_t **ret,
			    size_t *ret_size, uint64_t *ret_vaddr)
{
	uint8_t header[4 + 8];
	struct cfi_section hdr = {header, sizeof(header), 0, true};
	GElf_Phdr phdr = {0};
	uint64_t vaddr;
	size_t pos = 4;
	size_t i;

	for (i = 0; i < f->n_phdrs; i++) {
		if (gelf_getphdr(f->elf, (int)i, &phdr) &&
		    phdr.p_type == PT_GNU_EH_FRAME)
			break;
	}
	if (i == f->n_phdrs || phdr.p_filesz < sizeof(header) ||
	    pread_all(f->fd, header, sizeof(header), phdr.p_offset))
		return -ENODATA;
	hdr.vaddr = phdr.p_vaddr;
	/* version 1, then the encodings of the pointer, a count, a table */
	if (header[0] != 1 ||
	    !cfi_read_pointer(&hdr, header[1], sizeof(header), &pos, &vaddr))
		return -ENODATA;
	for (i = 0; i < f->n_phdrs; i++) {
		uint64_t skip;
		int r;

		if (!gelf_getphdr(f->elf, (int)i, &phdr) ||
		    phdr.p_type != PT_LOAD || vaddr < phdr.p_vaddr ||
		    vaddr - phdr.p_vaddr >= phdr.p_filesz)
			continue;
		skip = vaddr - phdr.p_vaddr;
		if (phdr.p_offset > f->size)
			return -ENODATA;
		r = elf_file_read(f, phdr.p_offset + skip, phdr.p_filesz - skip,
				  CFI_SECTION_MAX, ret);
		if (r)
			return r;
		*ret_size = eh_frame_size(*ret, phdr.p_filesz - skip);
		*ret_vaddr = vaddr;
		return 0;
	}
	return -ENODATA;
}

int cfi_source_load(struct cfi_source *s, const struct elf_file *f, bool is_eh)
{
	uint8_t *bytes = NULL;
	uint64_t vaddr = 0;
	size_t size = 0;
	GElf_Shdr shdr;
	Elf_Scn *scn;
	int r = -ENODATA;

	scn = elf_file_section(f, is_eh ? ".eh_frame" : ".debug_frame", &shdr);
	if (scn) {
		r = elf_file_contents(f, scn, &shdr, CFI_SECTION_MAX, &bytes,
				      &size);
		vaddr = shdr.sh_addr;
	} else if (is_eh) {
		r = eh_frame_by_phdr(f, &bytes, &size, &vaddr);
	}
	if (r == 0 && size > 0)
		r = source_build(s, bytes, size, vaddr, is_eh);
	free(bytes);
	return r == -ENOMEM ? r : 0;
}
