#include "tests/unit/unwind/made_up.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "tests/unit/suite.h"

#define MAPS_BYTES_MAX (1u << 20)

/* ctx: some code of the program. */
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

void made_up_start(struct made_up *m, size_t n_words, const uint8_t *code)
{
	static const struct unwind_files files = {.image = image};
	static const struct unwind_cache_options options = {
		.max_bytes = 16u << 20,
	};

	OK(unwind_cache_new(&options, &m->cache));
	OK(unwind_space_new(m->cache, &files, (void *)(uintptr_t)code,
			    &m->space));
	read_maps(m->space);
	m->sample = calloc(1, sizeof(*m->sample) + n_words * 8);
	ck_assert_ptr_nonnull(m->sample);
	m->sample->arch = SAMPLE_ARCH_X86_64;
	m->sample->regs_known = UINT64_C(1) << SAMPLE_X86_64_RSP |
				UINT64_C(1) << SAMPLE_X86_64_RIP;
	m->sample->regs[SAMPLE_X86_64_RSP] = MADE_UP_STACK;
	m->sample->stack_addr = MADE_UP_STACK;
	m->sample->stack_size = (uint32_t)n_words * 8;
	m->stack = (uint64_t *)(void *)m->sample->stack;
}

void made_up_end(struct made_up *m)
{
	free(m->sample);
	unwind_space_free(m->space);
	unwind_cache_free(m->cache);
}

void made_up_walk(struct made_up *m)
{
	OK(unwind_walk(m->space, m->sample,
		       sizeof(*m->sample) + m->sample->stack_size,
		       UNWIND_FRAMES_MAX, &m->out));
}

int made_up_file(uint8_t *file, size_t size, size_t sections,
		 Elf64_Half n_sections)
{
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			    ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_shoff = sections,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = n_sections,
		.e_shstrndx = 2,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = 4096,
	};
	int fd = memfd_create("image", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), &segment, sizeof(segment));
	ck_assert_int_eq(write(fd, file, size), (ssize_t)size);
	return fd;
}
