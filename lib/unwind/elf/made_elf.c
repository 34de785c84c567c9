#include "lib/unwind/elf/made_elf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"

/* Layout: ELF header, sections, their names, section headers. */
int made_elf_open(struct made_elf *m, struct made_section *sections, size_t n)
{
	size_t pos = sizeof(Elf64_Ehdr);
	size_t names_size = 1; /* the empty name */
	size_t names_at, shdrs_at;
	char *names, *name;
	Elf64_Shdr *shdr;

	for (size_t i = 0; i < n; i++) {
		pos += sections[i].size;
		names_size += strlen(sections[i].name) + 1;
	}
	names_at = pos;
	shdrs_at = align_up(names_at + names_size, sizeof(uint64_t));
	m->size = shdrs_at + (n + 2) * sizeof(*shdr);
	m->file = calloc(1, m->size);
	if (!m->file)
		return -ENOMEM;
	names = (char *)m->file + names_at;
	name = names + 1;
	shdr = (void *)(m->file + shdrs_at);
	pos = sizeof(Elf64_Ehdr);
	for (size_t i = 0; i < n; i++) {
		struct made_section *s = &sections[i];

		if (s->size == 0)
			continue;
		s->bytes = m->file + pos;
		*++shdr = (Elf64_Shdr){.sh_name = (Elf64_Word)(name - names),
				       .sh_type = SHT_PROGBITS,
				       .sh_addr = s->addr,
				       .sh_offset = pos,
				       .sh_size = s->size,
				       .sh_addralign = 1};
		name = stpcpy(name, s->name) + 1;
		pos += s->size;
	}
	*++shdr = (Elf64_Shdr){.sh_type = SHT_STRTAB,
			       .sh_offset = names_at,
			       .sh_size = names_size,
			       .sh_addralign = 1};
	n = (size_t)(shdr - (Elf64_Shdr *)(void *)(m->file + shdrs_at));
	*(Elf64_Ehdr *)(void *)m->file = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = CPU_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_shoff = shdrs_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(n + 1),
		.e_shstrndx = (Elf64_Half)n,
	};
	m->elf = elf_memory((char *)m->file, m->size);
	if (m->elf)
		return 0;
	made_elf_close(m);
	return -ENOMEM;
}

void made_elf_close(struct made_elf *m)
{
	if (m->elf)
		(void)elf_end(m->elf);
	free(m->file);
	memset(m, 0, sizeof(*m));
}
