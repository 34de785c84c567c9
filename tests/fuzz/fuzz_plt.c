/*
 * PLT stubs and their relocations: the sizes of the strings, the code and the relocations in two
 * bytes each, then these; the symbols.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <string.h>

#include "lib/unwind/elf/plt.h"

static void check(const struct plt *p)
{
	uint64_t offset;
	const char *name;

	for (size_t i = 0; i < p->n; i++) {
		const struct plt_stub *stub = &p->stubs[i];

		assert(i == 0 || stub->start > p->stubs[i - 1].start);
		assert(stub->size > 0 && plt_covers(p, stub->start + stub->size - 1));
		assert(plt_name(p, stub->start, &name, &offset) && offset == 0);
		assert(strlen(name) > 4 && strcmp(name + strlen(name) - 4, "@plt") == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char strings[] = "resolved";
	struct symbol v = {.start = FUZZ_SECTIONS_AT, .size = 64};
	const struct symbols symbols = {.v = &v, .n = 1, .names = strings};
	struct fuzz_input in = {data, size};
	struct fuzz_section sections[] = {
		{.name = ".plt", .type = SHT_PROGBITS},
		{.name = ".rela.dyn", .type = SHT_RELA},
		{.name = ".dynsym", .type = SHT_DYNSYM, .link = 4},
		{.name = ".dynstr", .type = SHT_STRTAB},
	};
	uint8_t header[6];
	struct elf_file f;
	struct plt plt = {.n_sections = 0};
	int fd;

	fuzz_take(&in, header, sizeof(header));
	sections[3].size = (size_t)header[0] << 8 | header[1];
	sections[3].bytes = fuzz_take_bytes(&in, &sections[3].size);
	sections[0].size = (size_t)header[2] << 8 | header[3];
	sections[0].bytes = fuzz_take_bytes(&in, &sections[0].size);
	sections[1].size = (size_t)header[4] << 8 | header[5];
	sections[1].bytes = fuzz_take_bytes(&in, &sections[1].size);
	sections[2].size = in.left;
	sections[2].bytes = in.bytes;
	fd = fuzz_elf(sections, array_size(sections));
	assert(elf_file_open(&f, fd) == 0);
	plt_find(&plt, &f);
	assert(plt_load(&plt, &f, &symbols) == 0);
	check(&plt);
	plt_drop(&plt);
	elf_file_close(&f);
	close_fd(&fd);
	return 0;
}
