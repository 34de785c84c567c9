/* Ways through code that may be any bytes. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/unwind/x86_64_insn.h"
#include "lib/unwind/x86_64_way.h"

#define BASE	  0x1000
#define STEPS_MAX 4096

struct text {
	const uint8_t *bytes;
	size_t size;
};

static size_t read_text(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	const struct text *t = ctx;

	if (vaddr < BASE || vaddr - BASE >= t->size)
		return 0;
	n = min_size(n, t->size - (size_t)(vaddr - BASE));
	memcpy(bytes, t->bytes + (vaddr - BASE), n);
	return n;
}

static void check(const struct x86_64_way *way)
{
	assert(way->ra < X86_64_WAY_MAX && way->ra % 8 == 0);
	assert(way->fp == X86_64_WAY_FP_SAME ||
	       (way->fp < X86_64_WAY_MAX && way->fp % 8 == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text text = {data, size};
	struct x86_64_code code = {read_text, &text, 0, STEPS_MAX};
	struct x86_64_insn insn;
	struct x86_64_way way;

	for (size_t at = 0; at < size; at++)
		if (x86_64_insn_read(data + at, size - at, &insn))
			assert(insn.size > 0 && insn.size <= X86_64_INSN_MAX &&
			       insn.size <= size - at);
	if (x86_64_way_back(&code, BASE, &way))
		check(&way);
	assert(code.steps <= STEPS_MAX);
	code.steps = 0;
	if (size > 0 && x86_64_way_there(&code, BASE, BASE + size - 1, &way))
		check(&way);
	assert(code.steps <= STEPS_MAX);
	return 0;
}
