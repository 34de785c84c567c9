/*
 * A whole ELF file with debug information: its lines. The clock advances by itself, so that the
 * time limit is reached at the same step in each run.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "lib/unwind/dwarf/lines.h"

/* Readings of the clock until the time is over. */
#define READINGS 4000
/* The address of the code in the corpus. */
#define TEXT_ADDR 0x1000
#define TEXT_SIZE 0x400

static uint64_t clock_ns;

static uint64_t go_on(void)
{
	return clock_ns += LINES_TIME_MAX_NS / READINGS;
}

static void find(struct lines *l, uint64_t vaddr)
{
	struct unwind_line v[UNWIND_LINES_MAX];
	size_t n = lines_find(l, vaddr, v);

	assert(n <= UNWIND_LINES_MAX);
	for (size_t i = 0; i < n; i++) {
		if (v[i].function)
			assert(strlen(v[i].function) < LINES_SECTIONS_MAX);
		if (v[i].file)
			assert(strlen(v[i].file) < LINES_SECTIONS_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	struct lines *l = NULL;
	struct elf_file f;

	clock_ns = 0;
	if (elf_file_open(&f, fd) == 0) {
		assert(lines_open(&f, go_on, &l) == 0);
		elf_file_close(&f);
	}
	if (l) {
		for (uint64_t i = 0; i < TEXT_SIZE; i += 3)
			find(l, TEXT_ADDR + i);
		find(l, 0);
		find(l, UINT64_MAX);
		assert(lines_is_incomplete(l) || lines_bytes(l) > 0);
		lines_free(l);
	}
	close_fd(&fd);
	return 0;
}
