/* The answer of an unwind that a file may have taken over. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "daemon/msg/symbolized.h"
#include "lib/aggregate/names.h"

static void check_text(const char *text, const uint8_t *data, size_t size)
{
	if (text == NULL)
		return;
	assert((const uint8_t *)text >= data && (const uint8_t *)text + strlen(text) < data + size);
	assert(text[0] != '\0' && strlen(text) < NAME_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolized_cursor c = {data, size};
	struct symbolized_pc place;

	while (symbolized_next(&c, &place) == 0) {
		assert(place.n >= 1 && place.n <= UNWIND_LINES_MAX);
		assert(c.at + c.left == data + size);
		for (size_t i = 0; i < place.n; i++) {
			assert(place.frames[i].function != NULL || i + 1 == place.n);
			assert(place.frames[i].line <= INT32_MAX);
			check_text(place.frames[i].function, data, size);
			check_text(place.frames[i].file, data, size);
		}
	}
	return 0;
}
