/* Paths through code of any bytes. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>

#include "lib/unwind/cpu/x86_64_insn.h"
#include "lib/unwind/cpu/x86_64_path.h"
#include "tests/unit/unwind/code_text.h"

#define STEPS_MAX 4096

static void check(const struct x86_64_path *path)
{
	assert(path->ra < X86_64_PATH_MAX && path->ra % 8 == 0);
	assert(path->base == X86_64_BASE_SP ||
	       (path->ra <= X86_64_PATH_POPS_MAX && path->base_at < X86_64_PATH_BASE_MAX));
	assert(path->fp == X86_64_PATH_FP_SAME ||
	       (path->fp < X86_64_PATH_MAX && path->fp % 8 == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_text text = {data, size};
	struct x86_64_code code = {code_text_read, &text, 0, STEPS_MAX};
	struct x86_64_insn insn;
	struct x86_64_path path;

	for (size_t at = 0; at < size; at++) {
		if (x86_64_insn_read(data + at, size - at, &insn))
			assert(insn.size > 0 && insn.size <= X86_64_INSN_MAX &&
			       insn.size <= size - at);
		(void)x86_64_installs_handler(data + at, size - at);
	}
	if (x86_64_path_to_ret(&code, CODE_TEXT_BASE, &path))
		check(&path);
	assert(code.steps <= STEPS_MAX);
	code.steps = 0;
	if (size > 0 &&
	    x86_64_path_from_start(&code, CODE_TEXT_BASE, CODE_TEXT_BASE + size - 1, &path))
		check(&path);
	assert(code.steps <= STEPS_MAX);
	return 0;
}
