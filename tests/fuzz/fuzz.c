#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/unwind/cpu.h"

/* The longest of ".gnu_debuglink", ".gnu_debugdata", ... */
#define NAME_SIZE 16

int fuzz_file(const uint8_t *bytes, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	assert(fd >= 0);
	for (size_t pos = 0; pos < size;) {
		ssize_t n = write(fd, bytes + pos, size - pos);

		assert(n > 0);
		pos += (size_t)n;
	}
	return fd;
}

/* Where everything is: sections, their names, their headers. */
static size_t lay_out(const struct fuzz_section *v, size_t n,
		      Elf64_Shdr shdrs[FUZZ_SECTIONS_MAX + 2],
		      char names[FUZZ_SECTIONS_MAX + 1][NAME_SIZE])
{
	size_t at = FUZZ_SECTIONS_AT;

	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(v[i].name);

		assert(length < NAME_SIZE);
		memcpy(names[i + 1], v[i].name, length);
		shdrs[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)((i + 1) * NAME_SIZE),
			.sh_type = v[i].type,
			.sh_flags = v[i].flags,
			.sh_addr = v[i].addr ? v[i].addr : at,
			.sh_offset = at,
			.sh_size = v[i].size,
			.sh_link = v[i].link,
			.sh_entsize = v[i].entry_size,
			.sh_addralign = 1,
		};
		at = align_up(at + v[i].size, 8);
	}
	shdrs[n + 1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = at,
		.sh_size = (n + 1) * NAME_SIZE,
		.sh_addralign = 1,
	};
	return at + (n + 1) * NAME_SIZE;
}

int fuzz_elf(const struct fuzz_section *v, size_t n)
{
	char names[FUZZ_SECTIONS_MAX + 1][NAME_SIZE] = {{0}};
	Elf64_Shdr shdrs[FUZZ_SECTIONS_MAX + 2] = {{0}};
	size_t shdrs_at, size;
	uint8_t *file;
	int fd;

	assert(n <= FUZZ_SECTIONS_MAX);
	shdrs_at = lay_out(v, n, shdrs, names);
	size = shdrs_at + (n + 2) * sizeof(shdrs[0]);
	const Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = CPU_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = shdrs_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(n + 2),
		.e_shstrndx = (Elf64_Half)(n + 1),
	};
	Elf64_Phdr phdrs[2] = {{
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = size,
		.p_memsz = max_u64(size, FUZZ_SEGMENT_SIZE),
		.p_align = FUZZ_SECTIONS_AT,
	}};

	file = calloc(1, size);
	assert(file);
	memcpy(file, &ehdr, sizeof(ehdr));
	for (size_t i = 0; i < n; i++) {
		const Elf64_Shdr *shdr = &shdrs[i + 1];

		if (v[i].size > 0)
			memcpy(file + shdr->sh_offset, v[i].bytes, v[i].size);
		if (strcmp(v[i].name, ".eh_frame_hdr") == 0)
			phdrs[1] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
						.p_offset = shdr->sh_offset,
						.p_vaddr = shdr->sh_addr,
						.p_filesz = shdr->sh_size};
	}
	memcpy(file + sizeof(ehdr), phdrs, sizeof(phdrs));
	memcpy(file + shdrs[n + 1].sh_offset, names, (n + 1) * NAME_SIZE);
	memcpy(file + shdrs_at, shdrs, (n + 2) * sizeof(shdrs[0]));
	fd = fuzz_file(file, size);
	free(file);
	return fd;
}

void fuzz_take(struct fuzz_input *in, void *ret, size_t n)
{
	size_t has = n;
	const uint8_t *bytes = fuzz_take_bytes(in, &has);

	memset(ret, 0, n);
	if (has > 0)
		memcpy(ret, bytes, has);
}

const uint8_t *fuzz_take_bytes(struct fuzz_input *in, size_t *n)
{
	const uint8_t *bytes = in->bytes;

	*n = min_size(*n, in->left);
	in->bytes += *n;
	in->left -= *n;
	return bytes;
}
