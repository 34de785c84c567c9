/* Ways through code that may be any bytes. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "lib/unwind/x86_64_insn.h"
#include "lib/unwind/x86_64_install.h"
#include "lib/unwind/x86_64_way.h"
#include "tests/unit/unwind/code_text.h"

#define STEPS_MAX 4096

static void check(const struct x86_64_way *way)
{
	assert(way->ra < X86_64_WAY_MAX && way->ra % 8 == 0);
	assert(way->fp == X86_64_WAY_FP_SAME ||
	       (way->fp < X86_64_WAY_MAX && way->fp % 8 == 0));
}

static bool read_word(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	*ret = ~addr;
	return addr % 8 == 0;
}

static void install(struct code_text *text, uint64_t at)
{
	struct x86_64_install m = {
		.code = code_text_read,
		.word = read_word,
		.ctx = text,
		.known = 0xffff,
	};

	m.r[X86_64_RIP] = at;
	(void)x86_64_install_run(&m);
	assert(m.steps <= 64 && m.n_stored <= X86_64_INSTALL_STORES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_text text = {data, size};
	struct x86_64_code code = {code_text_read, &text, 0, STEPS_MAX};
	struct x86_64_insn insn;
	struct x86_64_way way;

	for (size_t at = 0; at < size; at++) {
		if (x86_64_insn_read(data + at, size - at, &insn))
			assert(insn.size > 0 && insn.size <= X86_64_INSN_MAX &&
			       insn.size <= size - at);
		install(&text, CODE_TEXT_BASE + at);
	}
	if (x86_64_way_back(&code, CODE_TEXT_BASE, &way))
		check(&way);
	assert(code.steps <= STEPS_MAX);
	code.steps = 0;
	if (size > 0 && x86_64_way_there(&code, CODE_TEXT_BASE,
					 CODE_TEXT_BASE + size - 1, &way))
		check(&way);
	assert(code.steps <= STEPS_MAX);
	return 0;
}
