#include "tests/unit/unwind/made_up.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/unwind/cpu.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

#define MAPS_BYTES_MAX (1u << 20)

/* Opens the file of this program if the mapping has the code that ctx points to. */
static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const uint64_t code = (uint64_t)(uintptr_t)ctx;

	if (code < start || code >= end)
		return -ENOENT;
	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static void read_maps(struct unwind_space *space)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct buf text;

	buf_init(&text, MAPS_BYTES_MAX);
	ck_assert_int_ge(fd, 0);
	OK(buf_read_fd(&text, fd));
	close_fd(&fd);
	OK(unwind_space_set_maps(space, buf_string(&text), text.len));
	buf_fini(&text);
}

static void start(struct made_up *m, size_t n_words, const struct unwind_files *files, void *ctx)
{
	static const struct unwind_cache_options options = {
		.max_bytes = 16u << 20,
	};

	OK(unwind_cache_new(&options, &m->cache));
	OK(unwind_space_new(m->cache, files, ctx, &m->space));
	m->sample = calloc(1, sizeof(*m->sample) + n_words * 8);
	ck_assert_ptr_nonnull(m->sample);
	m->sample->arch = CPU_SAMPLE_ARCH;
	m->sample->regs_known = UINT64_C(1) << CPU_SP | UINT64_C(1) << CPU_PC;
	m->sample->regs[CPU_SP] = MADE_UP_STACK;
	m->sample->stack_addr = MADE_UP_STACK;
	m->sample->stack_size = (uint32_t)n_words * 8;
	m->stack = (uint64_t *)(void *)m->sample->stack;
}

void made_up_start(struct made_up *m, size_t n_words, const uint8_t *code)
{
	static const struct unwind_files files = {.image = image};

	start(m, n_words, &files, (void *)(uintptr_t)code);
	read_maps(m->space);
}

void made_up_map(struct made_up *m, size_t n_words, const char *maps,
		 const struct unwind_files *files)
{
	start(m, n_words, files, NULL);
	OK(unwind_space_set_maps(m->space, maps, strlen(maps)));
}

void made_up_end(struct made_up *m)
{
	free(m->sample);
	unwind_space_free(m->space);
	unwind_cache_free(m->cache);
}

void made_up_walk(struct made_up *m)
{
	OK(unwind_walk(m->space, m->sample, sizeof(*m->sample) + m->sample->stack_size,
		       UNWIND_FRAMES_MAX, &m->out));
}

void made_up_check(struct made_up *m, size_t n, uint64_t caller)
{
	made_up_walk(m);
	ck_assert_uint_eq(m->out.n, n);
	if (n > 1)
		ck_assert_uint_eq(m->out.frames[1].addr, caller);
}

int made_up_file(const uint8_t *code, size_t size, uint64_t tail, size_t n)
{
	static const char names[] = "\0tail";
	const size_t n_symbols = n + 1;
	Elf64_Sym *symbols = calloc(n_symbols, sizeof(*symbols));
	const struct fuzz_section sections[] = {
		{.name = ".text", .type = SHT_PROGBITS, .bytes = code, .size = size},
		{.name = ".symtab",
		 .type = SHT_SYMTAB,
		 .link = 3,
		 .entry_size = sizeof(*symbols),
		 .bytes = (const uint8_t *)symbols,
		 .size = n_symbols * sizeof(*symbols)},
		{.name = ".strtab",
		 .type = SHT_STRTAB,
		 .bytes = (const uint8_t *)names,
		 .size = sizeof(names)},
	};
	int fd;

	ck_assert_ptr_nonnull(symbols);
	for (size_t i = 0; i < n; i++)
		symbols[i + 1] = (Elf64_Sym){
			.st_name = 1,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = tail + i * MADE_UP_STEP,
			.st_size = 5,
		};
	fd = fuzz_elf(sections, array_size(sections));
	free(symbols);
	return fd;
}
