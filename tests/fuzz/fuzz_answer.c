/* The body of an answer, with which a server explains an error. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "proto/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char detail[32];

	memset(detail, 'x', sizeof(detail));
	answer_detail((const char *)data, size, detail, sizeof(detail));
	assert(memchr(detail, '\0', sizeof(detail)) != NULL);
	return 0;
}
