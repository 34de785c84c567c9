#include "lib/unwind/elf/elf_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/unwind/elf/unpack.h"

/* Some versions of elf.h and libelf do not have it. */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Before the contents of a .zdebug_ section: "ZLIB" and the size. */
#define GNU_COMPRESSED_HEADER 12

int elf_file_pread(int fd, void *bytes, size_t n, uint64_t offset)
{
	uint8_t *p = bytes;

	if (offset > INT64_MAX || n > INT64_MAX - offset)
		return -ENODATA;
	while (n > 0) {
		ssize_t got = pread(fd, p, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENODATA;
		p += got;
		n -= (size_t)got;
		offset += (uint64_t)got;
	}
	return 0;
}

/* Returns true if libelf may read the headers. libelf trusts counts, also those in section 0. */
static bool headers_bounded(int fd)
{
	Elf64_Ehdr ehdr;
	Elf64_Shdr first;

	if (elf_file_pread(fd, &ehdr, sizeof(ehdr), 0) ||
	    memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN))
		return false;
	if (ehdr.e_phnum == 0 || ehdr.e_phnum > ELF_PHDRS_MAX ||
	    ehdr.e_phentsize != sizeof(Elf64_Phdr) || ehdr.e_shnum > ELF_SECTIONS_MAX)
		return false;
	if (ehdr.e_shoff == 0 || ehdr.e_shnum != 0)
		return true;
	return elf_file_pread(fd, &first, sizeof(first), ehdr.e_shoff) == 0 &&
	       first.sh_size <= ELF_SECTIONS_MAX;
}

/* Returns the index of the section names; 0 if there are none, or they are too large. */
static size_t find_shstrndx(const struct elf_file *f)
{
	GElf_Shdr shdr;
	Elf_Scn *scn;
	size_t index;

	if (elf_getshdrstrndx(f->elf, &index) || index == SHN_UNDEF)
		return 0;
	scn = elf_getscn(f->elf, index);
	if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_STRTAB ||
	    shdr.sh_size > ELF_SHSTRTAB_MAX || shdr.sh_flags & SHF_COMPRESSED)
		return 0;
	return index;
}

int elf_file_open(struct elf_file *f, int fd)
{
	struct stat st;

	memset(f, 0, sizeof(*f));
	f->fd = fd;
	if (fstat(fd, &st) || st.st_size <= 0 || !headers_bounded(fd) ||
	    elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	f->size = (uint64_t)st.st_size;
	f->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!f->elf)
		return -ENOEXEC;
	if (elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->ehdr) ||
	    elf_getphdrnum(f->elf, &f->n_phdrs) || f->n_phdrs > ELF_PHDRS_MAX) {
		elf_file_close(f);
		return -ENOEXEC;
	}
	f->shstrndx = find_shstrndx(f);
	return 0;
}

bool elf_file_phdr(const struct elf_file *f, uint32_t type, GElf_Phdr *ret)
{
	for (size_t i = 0; i < f->n_phdrs; i++)
		if (gelf_getphdr(f->elf, (int)i, ret) && ret->p_type == type)
			return true;
	return false;
}

void elf_file_close(struct elf_file *f)
{
	if (f->elf)
		(void)elf_end(f->elf);
	f->elf = NULL;
}

static const char *section_name(const struct elf_file *f, const GElf_Shdr *shdr)
{
	const char *name = elf_strptr(f->elf, f->shstrndx, shdr->sh_name);

	return name ? name : "";
}

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Returns true if its is name, or the name of the same section in the old compressed form. */
static bool is_section(const char *its, const char *name)
{
	return strcmp(its, name) == 0 ||
	       (has_prefix(its, ".zdebug_") && has_prefix(name, ".debug_") &&
		strcmp(its + strlen(".zdebug_"), name + strlen(".debug_")) == 0);
}

Elf_Scn *elf_file_section(const struct elf_file *f, const char *name, GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	size_t n = 0;

	if (f->shstrndx == 0)
		return NULL;
	while ((scn = elf_nextscn(f->elf, scn)) && n++ < ELF_SECTIONS_MAX) {
		if (gelf_getshdr(scn, ret) && is_section(section_name(f, ret), name))
			return scn;
	}
	return NULL;
}

Elf_Scn *elf_file_section_of_type(const struct elf_file *f, uint32_t type, GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	size_t n = 0;

	while ((scn = elf_nextscn(f->elf, scn)) && n++ < ELF_SECTIONS_MAX) {
		if (gelf_getshdr(scn, ret) && ret->sh_type == type)
			return scn;
	}
	return NULL;
}

int elf_file_read(const struct elf_file *f, uint64_t offset, uint64_t size, size_t max,
		  uint8_t **ret)
{
	uint8_t *bytes;
	int r;

	if (size > max)
		return -E2BIG;
	if (offset > f->size || size > f->size - offset || size == 0)
		return -ENODATA;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	r = elf_file_pread(f->fd, bytes, size, offset);
	if (r) {
		free(bytes);
		return r;
	}
	*ret = bytes;
	return 0;
}

/* Copies the decompressed contents, which libelf owns until elf_end(). */
static int copy_data(Elf_Scn *scn, uint8_t **ret, size_t *ret_size)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	uint8_t *copy;

	if (!data || !data->d_buf || data->d_size == 0)
		return -ENODATA;
	copy = malloc(data->d_size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data->d_buf, data->d_size);
	*ret = copy;
	*ret_size = data->d_size;
	return 0;
}

/* Decompresses a section. The caller has compared size with a limit. */
static int decompress_zstd(const struct elf_file *f, const GElf_Shdr *shdr, size_t size,
			   uint8_t **ret, size_t *ret_size)
{
	uint8_t *in;
	int r;

	if (shdr->sh_size <= sizeof(Elf64_Chdr) || size == 0)
		return -ENODATA;
	r = elf_file_read(f, shdr->sh_offset, shdr->sh_size, shdr->sh_size, &in);
	if (r)
		return r;
	r = unpack_zstd(in + sizeof(Elf64_Chdr), shdr->sh_size - sizeof(Elf64_Chdr), size, ret);
	free(in);
	if (r == 0)
		*ret_size = size;
	return r;
}

static int decompress(const struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *shdr, size_t max,
		      uint8_t **ret, size_t *ret_size)
{
	GElf_Chdr chdr;

	if (!gelf_getchdr(scn, &chdr))
		return -ENODATA;
	if (chdr.ch_size > max)
		return -E2BIG;
	if (chdr.ch_type == ELFCOMPRESS_ZSTD)
		return decompress_zstd(f, shdr, chdr.ch_size, ret, ret_size);
	if (elf_compress(scn, 0, 0) < 0)
		return -ENODATA;
	return copy_data(scn, ret, ret_size);
}

/* Decompresses a .zdebug_ section, the form before SHF_COMPRESSED, which old tools still write. */
static int decompress_gnu(const struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *shdr, size_t max,
			  uint8_t **ret, size_t *ret_size)
{
	uint8_t header[GNU_COMPRESSED_HEADER];
	uint64_t size = 0;

	if (shdr->sh_size <= sizeof(header) ||
	    elf_file_pread(f->fd, header, sizeof(header), shdr->sh_offset) ||
	    memcmp(header, "ZLIB", 4) != 0)
		return -ENODATA;
	for (size_t i = 4; i < sizeof(header); i++)
		size = size << 8 | header[i];
	if (size > max)
		return -E2BIG;
	if (elf_compress_gnu(scn, 0, 0) < 0)
		return -ENODATA;
	return copy_data(scn, ret, ret_size);
}

int elf_file_contents(const struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *shdr, size_t max,
		      uint8_t **ret, size_t *ret_size)
{
	bool is_gnu = f->shstrndx != 0 && has_prefix(section_name(f, shdr), ".zdebug_");
	int r;

	if (shdr->sh_type == SHT_NOBITS)
		return -ENODATA;
	if (shdr->sh_flags & SHF_COMPRESSED || is_gnu) {
		/* libelf reads the section: it must be within the file and the limit. */
		if (shdr->sh_size > max)
			return -E2BIG;
		if (shdr->sh_offset > f->size || shdr->sh_size > f->size - shdr->sh_offset)
			return -ENODATA;
		return is_gnu ? decompress_gnu(f, scn, shdr, max, ret, ret_size)
			      : decompress(f, scn, shdr, max, ret, ret_size);
	}
	r = elf_file_read(f, shdr->sh_offset, shdr->sh_size, max, ret);
	if (r == 0)
		*ret_size = shdr->sh_size;
	return r;
}
