/* Names of C++, Rust and D. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/unwind.h"

static void demangle(const char *raw, bool with_parameters, size_t size)
{
	char *out = malloc(size);

	assert(out);
	if (unwind_demangle(raw, with_parameters, out, size))
		assert(strnlen(out, size) < size && out[0] != '\0');
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *raw = malloc(size + 1);

	assert(raw);
	if (size > 0)
		memcpy(raw, data, size);
	raw[size] = '\0';
	for (int i = 0; i < 2; i++) {
		demangle(raw, i, 1);
		demangle(raw, i, 32);
		demangle(raw, i, 4096);
	}
	free(raw);
	return 0;
}
