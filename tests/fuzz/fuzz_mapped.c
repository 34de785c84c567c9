/*
 * A whole ELF file that a target has mapped, through the functions that the daemon calls for a
 * sample: walks from addresses in its code, with a stack of such addresses, and then the names and
 * lines of the frames. .gnu_debuglink leads to the file itself.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/dwarf/lines.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/unwind.h"

#define IMAGE UINT64_C(0x400000)
#define STACK UINT64_C(0x7fff00000000)
#define PAGE  UINT64_C(4096)
/* Bytes of code, words of the stack, and walks. */
#define CODE_MAX (UINT64_C(1) << 24)
#define WORDS	 256
#define WALKS	 48
#define FRAMES	 32
/* Readings of the clock until the time for lines is over. */
#define READINGS 4000

struct input {
	const uint8_t *bytes;
	size_t size;
	uint64_t offset, code; /* of the mapping: offset in the file, bytes of code */
};

static uint64_t clock_ns;

static uint64_t go_on(void)
{
	return clock_ns += LINES_TIME_MAX_NS / READINGS;
}

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const struct input *in = ctx;

	(void)start;
	(void)end;
	*ret_fd = fuzz_file(in->bytes, in->size);
	return 0;
}

static int debug_link(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd)
{
	assert(name[0] != '.' && !strchr(name, '/'));
	return image(ctx, start, end, ret_fd);
}

static const struct unwind_files files = {.image = image, .debug_link = debug_link};

/* Finds what the kernel would map of the file: its first executable segment. */
static void find_code(struct input *in)
{
	int fd = fuzz_file(in->bytes, in->size);
	struct elf_file f;
	GElf_Phdr p;

	in->offset = 0;
	in->code = PAGE;
	if (elf_file_open(&f, fd) == 0) {
		for (size_t i = 0; i < f.n_phdrs; i++) {
			if (!gelf_getphdr(f.elf, (int)i, &p) || p.p_type != PT_LOAD ||
			    !(p.p_flags & PF_X))
				continue;
			in->offset = p.p_offset & ~(PAGE - 1);
			in->code = min_u64(p.p_filesz, CODE_MAX) + p.p_offset % PAGE + 1;
			break;
		}
		elf_file_close(&f);
	}
	close_fd(&fd);
}

static void set_maps(struct unwind_space *space, const struct input *in)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "%" PRIx64 "-%" PRIx64 " r-xp %08" PRIx64 " fe:01 1 /a\n"
			 "7fff00000000-7fff00010000 rw-p 00000000 00:00 0 [stack]\n",
			 IMAGE, align_up(IMAGE + in->code, PAGE), in->offset);

	assert(unwind_space_set_maps(space, text, (size_t)n) == 0);
}

static void name_frame(struct unwind_space *space, uint64_t addr)
{
	struct unwind_line lines[UNWIND_LINES_MAX];
	char demangled[256];
	const char *name;
	uint64_t offset, start;
	size_t n;

	(void)!unwind_function_at(space, addr, &start);
	if (unwind_symbol_at(space, addr, &name, &offset) == 0 &&
	    unwind_demangle(name, true, demangled, sizeof(demangled)))
		assert(strlen(demangled) < sizeof(demangled));
	if (unwind_lines_at(space, addr, lines, &n) == 0) {
		assert(n <= UNWIND_LINES_MAX);
		for (size_t i = 0; i < n; i++)
			assert(!lines[i].file || strlen(lines[i].file) < LINES_SECTIONS_MAX);
	}
	unwind_names_done(space);
}

static void walk(struct unwind_space *space, const struct input *in, uint64_t seed)
{
	static struct unwind_stack stack;
	const size_t size = sizeof(struct record_sample) + WORDS * sizeof(uint64_t);
	struct record_sample *s = calloc(1, size);
	uint64_t x = seed;

	assert(s);
	s->h.tid = (uint32_t)seed;
	s->arch = SAMPLE_ARCH_X86_64;
	s->regs_known = UINT64_MAX >> (64 - CPU_N_REGS);
	s->stack_addr = STACK;
	s->stack_size = WORDS * sizeof(uint64_t);
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t word;

		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		word = (x >> 32) % in->code + IMAGE;
		if (x >> 62 == 0)
			word = STACK + (x >> 32) % s->stack_size / 8 * 8;
		memcpy(s->stack + i * sizeof(word), &word, sizeof(word));
		if (i < CPU_N_REGS)
			s->regs[i] = word;
	}
	s->regs[SAMPLE_X86_64_RSP] = STACK;
	s->regs[SAMPLE_X86_64_RIP] = IMAGE + in->code * seed / WALKS;
	assert(unwind_walk(space, s, size, FRAMES, &stack) == 0);
	assert(stack.n >= 1 && stack.n <= FRAMES);
	for (size_t i = 0; i < stack.n; i++)
		name_frame(space, stack.frames[i].addr - !stack.frames[i].is_leaf);
	free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwind_cache_options options = {.max_bytes = 64u << 20, .cpu_ns = go_on};
	struct input in = {.bytes = data, .size = size};
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct unwind_image found;

	if (size == 0)
		return 0;
	clock_ns = 0;
	find_code(&in);
	assert(unwind_cache_new(&options, &cache) == 0);
	assert(unwind_space_new(cache, &files, &in, &space) == 0);
	unwind_space_set_symbols(space, UNWIND_SYMBOLS_LINES);
	set_maps(space, &in);
	for (uint64_t i = 0; i < WALKS; i++)
		walk(space, &in, i);
	if (unwind_image_at(space, IMAGE, &found) == 0)
		assert(strcmp(found.path, "/a") == 0 && found.size > 0);
	unwind_space_free(space);
	unwind_cache_free(cache);
	return 0;
}
