/* Go's table of functions: its names and rows. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/elf/gopclntab.h"

#define BASE 0x400000
#define TEXT 0x401000

/* The same bytes in a section with other data, where a table is searched. */
static void search(const uint8_t *data, size_t size)
{
	const struct fuzz_section sections[] = {
		{.name = ".data.rel.ro", .type = SHT_PROGBITS, .bytes = data, .size = size},
		{.name = ".go.buildinfo", .type = SHT_PROGBITS},
	};
	int fd = fuzz_elf(sections, array_size(sections));
	struct gopclntab t;
	struct elf_file f;

	assert(elf_file_open(&f, fd) == 0);
	if (gopclntab_open(&f, &t) == 0) {
		assert(t.n > 0);
		gopclntab_close(&t);
	}
	elf_file_close(&f);
	close_fd(&fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that reads behind it are found. */
	uint8_t *bytes = malloc(size + 1);
	struct gopclntab_function f;
	struct gopclntab t;
	struct rows rows;

	search(data, size);
	assert(bytes);
	memcpy(bytes, data, size);
	bytes = realloc(bytes, size > 0 ? size : 1);
	if (gopclntab_parse(bytes, size, TEXT, &t)) {
		free(bytes);
		return 0;
	}
	for (size_t i = 0; i < t.n; i++) {
		if (!gopclntab_function(&t, i, &f))
			continue;
		assert(f.start < f.end && f.name_size < size);
		assert((const uint8_t *)f.name >= bytes &&
		       (const uint8_t *)f.name + f.name_size <= bytes + size);
	}
	assert(gopclntab_rows(&t, BASE, &rows) == 0);
	for (size_t i = 1; i < rows.n; i++)
		assert(rows.pc[i] > rows.pc[i - 1]);
	rows_fini(&rows);
	free(bytes);
	return 0;
}
