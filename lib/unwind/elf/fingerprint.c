#include "lib/unwind/elf/fingerprint.h"

#include "lib/base/watch_part.h"

/*
 * Sets *ret to the address of size bytes at this offset. Returns false if no segment has them that
 * the program does not write to.
 */
static bool find_vaddr(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t *ret)
{
	GElf_Phdr p;

	for (size_t k = 0; k < f->n_phdrs; k++) {
		if (!gelf_getphdr(f->elf, (int)k, &p) || p.p_type != PT_LOAD ||
		    (p.p_flags & PF_W) != 0 || offset < p.p_offset ||
		    offset - p.p_offset > p.p_filesz || size > p.p_filesz - (offset - p.p_offset))
			continue;
		*ret = p.p_vaddr + (offset - p.p_offset);
		return true;
	}
	return false;
}

static void add_part(const struct elf_file *f, uint64_t offset, uint64_t size,
		     struct fingerprint *ret)
{
	struct fingerprint_part *part = &ret->parts[ret->n];
	uint8_t bytes[WATCH_BYTES];

	part->size = (uint32_t)min_u64(size, sizeof(bytes));
	if (part->size == 0 || !find_vaddr(f, offset, part->size, &part->vaddr) ||
	    elf_file_pread(f->fd, bytes, part->size, offset))
		return;
	part->hash = watch_part_hash(bytes, part->size);
	ret->n++;
}

/* Adds n parts, evenly spread over a section. */
static void add_section(const struct elf_file *f, const char *name, uint64_t n,
			struct fingerprint *ret)
{
	GElf_Shdr shdr;

	if (!elf_file_section(f, name, &shdr) || shdr.sh_type == SHT_NOBITS ||
	    shdr.sh_size > f->size || shdr.sh_offset > f->size)
		return;
	for (uint64_t i = 1; i <= n; i++) {
		/* The last bytes of .gnu.hash are the hashes of the last names. */
		const uint64_t at = shdr.sh_size * i / n;

		add_part(f, shdr.sh_offset + at - min_u64(at, WATCH_BYTES),
			 min_u64(at, WATCH_BYTES), ret);
	}
}

void fingerprint_read(const struct elf_file *f, const struct build_id *id, struct fingerprint *ret)
{
	ret->n = 0;
	if (id->is_real)
		add_part(f, id->offset, id->size, ret);
	if (ret->n > 0)
		return;
	add_section(f, ".gnu.hash", 2, ret);
	add_section(f, ".dynstr", 2, ret);
	add_section(f, ".text", 4, ret);
}
