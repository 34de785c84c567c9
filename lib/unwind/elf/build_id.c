#include "lib/unwind/elf/build_id.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/digits.h"

/* Bytes of all notes of a segment: build-id, ABI tag, properties take a few hundred. */
#define NOTES_MAX (64u << 10)
/* The fallback of Sentry's server: docs/FORMATS.md, debug_id. */
#define TEXT_ID_BYTES 4096
#define TEXT_ID_SIZE  16

/* Finds the first note of type 3 in n bytes. The server ignores the note's name, too. */
static bool find_note(struct build_id *id, const uint8_t *p, size_t n, size_t align)
{
	size_t pos = 0;

	align = align == 8 ? 8 : 4;
	while (n - pos >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr h;
		size_t left;

		memcpy(&h, p + pos, sizeof(h));
		pos += sizeof(h);
		left = n - pos;
		if (h.n_namesz > left || align_up(pos + h.n_namesz, align) > n)
			return false;
		pos = align_up(pos + h.n_namesz, align);
		if (h.n_descsz > n - pos)
			return false;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_descsz > 0) {
			id->size = min_size(h.n_descsz, BUILD_ID_MAX);
			memcpy(id->bytes, p + pos, id->size);
			id->is_real = true;
			id->offset = pos;
			return true;
		}
		if (align_up(pos + h.n_descsz, align) > n)
			return false;
		pos = align_up(pos + h.n_descsz, align);
	}
	return false;
}

static bool notes_at(struct build_id *id, const struct elf_file *f, uint64_t offset, uint64_t size,
		     uint64_t align)
{
	uint8_t *notes;
	bool found;

	if (elf_file_read(f, offset, size, NOTES_MAX, &notes))
		return false;
	found = find_note(id, notes, size, (size_t)align);
	if (found)
		id->offset += offset;
	free(notes);
	return found;
}

/* Makes the identifier from the first bytes of .text, as the server does. */
static void from_text(struct build_id *id, const struct elf_file *f)
{
	GElf_Shdr shdr;
	uint8_t *text;
	size_t n;

	if (!elf_file_section(f, ".text", &shdr) || shdr.sh_type == SHT_NOBITS)
		return;
	n = (size_t)min_u64(shdr.sh_size, TEXT_ID_BYTES);
	if (elf_file_read(f, shdr.sh_offset, n, TEXT_ID_BYTES, &text))
		return;
	for (size_t k = 0; k < n; k++)
		id->bytes[k % TEXT_ID_SIZE] ^= text[k];
	id->size = TEXT_ID_SIZE;
	free(text);
}

void build_id_read(const struct elf_file *f, struct build_id *ret)
{
	GElf_Shdr shdr;
	GElf_Phdr p;

	memset(ret, 0, sizeof(*ret));
	for (size_t k = 0; k < f->n_phdrs; k++) {
		if (gelf_getphdr(f->elf, (int)k, &p) && p.p_type == PT_NOTE &&
		    notes_at(ret, f, p.p_offset, p.p_filesz, p.p_align))
			return;
	}
	if (elf_file_section(f, ".note.gnu.build-id", &shdr) && shdr.sh_type == SHT_NOTE &&
	    notes_at(ret, f, shdr.sh_offset, shdr.sh_size, shdr.sh_addralign))
		return;
	from_text(ret, f);
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->is_real && b->is_real && a->size == b->size &&
	       memcmp(a->bytes, b->bytes, a->size) == 0;
}

void build_id_hex(const struct build_id *id, char ret[BUILD_ID_HEX_SIZE])
{
	digits_of_bytes(id->bytes, id->size, ret);
}
