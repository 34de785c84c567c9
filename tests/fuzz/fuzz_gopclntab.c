/* Go's table of functions: its names and rows. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/elf/gopclntab.h"

#define BASE 0x400000
#define TEXT 0x401000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this size, so that reads behind it are found. */
	uint8_t *bytes = malloc(size + 1);
	struct gopclntab_function f;
	struct gopclntab t;
	struct rows rows;

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
