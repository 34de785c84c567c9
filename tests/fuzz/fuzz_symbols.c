/*
 * Symbol tables: the size of the strings in two bytes, one that says which
 * table, one that is not used; the strings; the symbols.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "lib/unwind/elf/symbols.h"

static void check(const struct symbols *s, size_t max)
{
	uint64_t offset;
	const char *name;

	assert(s->n <= max);
	for (size_t i = 0; i < s->n; i++) {
		const struct symbol *x = &s->v[i];

		assert(i == 0 || x->start > s->v[i - 1].start);
		assert(strlen(s->names + x->name) <= SYMBOLS_NAME_MAX);
		assert(s->names[x->name] != '\0');
		assert(symbols_find(s, s->base + x->start, &name, &offset));
		assert(offset == 0 && strcmp(name, s->names + x->name) == 0);
		if (symbols_find(s, s->base + x->start + x->size, &name, &offset))
			assert(offset <= UINT32_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct fuzz_section sections[] = {
		{.type = SHT_SYMTAB, .link = 2, .entry_size = sizeof(Elf64_Sym)},
		{.name = ".strtab", .type = SHT_STRTAB},
	};
	uint8_t header[4];
	struct symbols s;
	struct elf_file f;
	int fd;

	fuzz_take(&in, header, sizeof(header));
	sections[0].name = header[2] & 1 ? ".dynsym" : ".symtab";
	sections[0].type = header[2] & 1 ? SHT_DYNSYM : SHT_SYMTAB;
	sections[1].size = (size_t)header[0] << 8 | header[1];
	sections[1].bytes = fuzz_take_bytes(&in, &sections[1].size);
	sections[0].size = in.left;
	sections[0].bytes = in.bytes;
	fd = fuzz_elf(sections, array_size(sections));
	assert(elf_file_open(&f, fd) == 0);
	assert(symbols_load(&f, header[2] & 2 ? &f : NULL, 0, &s) == 0);
	check(&s, in.left / sizeof(Elf64_Sym));
	symbols_fini(&s);
	elf_file_close(&f);
	close_fd(&fd);
	return 0;
}
