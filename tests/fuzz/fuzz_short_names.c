/* Short names: a line of the input is a name. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/short_names.h"

#define NAMES_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = malloc(size + 1), *next = bytes, *name;
	const char *names[NAMES_MAX], *result[NAMES_MAX];
	struct string_pool text;
	size_t n = 0;

	assert(bytes);
	if (size > 0)
		memcpy(bytes, data, size);
	bytes[size] = '\0';
	while (n < NAMES_MAX && (name = strsep(&next, "\n")) != NULL)
		names[n++] = name;
	string_pool_init(&text, 0);
	if (short_names_make(names, n, &text, result) < 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		assert(strlen(result[i]) <= strlen(names[i]));
		for (size_t j = 0; j < i; j++)
			assert((strcmp(names[i], names[j]) == 0) == (result[i] == result[j]));
	}
	string_pool_fini(&text);
	free(bytes);
	return 0;
}
