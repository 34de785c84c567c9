// machine: aarch64
/* Made-up stacks through the trampoline of a signal handler that has no call frame information. */
#include "lib/unwind/unwind.h"

#include <string.h>

#include "lib/unwind/cpu.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"

#define CODE  UINT64_C(0x400000)
#define STACK MADE_UP_STACK
#define WORDS 256
/* Index of the word that sp points to while the second signal's frame is there. */
#define SECOND 100

/* Offsets in the file. The first page is its header. */
#define CALLER	   0x1104 /* behind a call of LEAF */
#define LEAF	   0x1108 /* a function that only returns */
#define TRAMPOLINE 0x1200 /* mov x8,#139; svc #0 */
#define CODE_END   0x2000

static const char maps_text[] = "400000-402000 r-xp 00000000 fe:01 1 /a\n"
				"7ffff0000000-7ffff0008000 rw-p 00000000 00:00 0 \n";

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	static const uint32_t leaf[] = {0x94000002, 0xd503201f, 0xd65f03c0}; /* bl LEAF; nop; ret */
	static const uint32_t trampoline[] = {0xd2801168, 0xd4000001};
	static uint8_t file[CODE_END];

	(void)ctx;
	(void)end;
	ck_assert_uint_eq(start, CODE);
	memcpy(file + CALLER - 4, leaf, sizeof(leaf));
	memcpy(file + TRAMPOLINE, trampoline, sizeof(trampoline));
	*ret_fd = made_up_file(file + MADE_UP_CODE, CODE_END - MADE_UP_CODE, LEAF, 1);
	return 0;
}

static const struct unwind_files files = {.image = image};

static struct made_up m;

static void set_up(void)
{
	made_up_map(&m, WORDS, maps_text, &files);
}

static void tear_down(void)
{
	made_up_end(&m);
}

/* Sets a register in the signal frame at a word of the stack. */
static void store(size_t word, unsigned int reg, uint64_t value)
{
	m.stack[word + cpu_sigframe_offset(reg) / 8] = value;
}

FIXTURE(set_up, tear_down)

/*
 * A handler has returned to the trampoline. Before that a signal had interrupted another trampoline
 * before its first instruction, and that one a function that only returns.
 */
TEST(code_that_a_signal_interrupts_is_read_at_its_pc)
{
	m.sample->regs[CPU_PC] = CODE + TRAMPOLINE;
	store(0, CPU_PC, CODE + TRAMPOLINE);
	store(0, CPU_SP, STACK + SECOND * 8);
	store(SECOND, CPU_PC, CODE + LEAF);
	store(SECOND, CPU_SP, STACK + 200 * 8);
	store(SECOND, CPU_RA, CODE + CALLER);
	made_up_walk(&m);
	ck_assert_uint_ge(m.out.n, 4);
	ck_assert_uint_eq(m.out.frames[1].addr, CODE + TRAMPOLINE + 4);
	ck_assert_uint_eq(m.out.frames[2].addr, CODE + LEAF + 4);
	ck_assert_uint_eq(m.out.frames[3].addr, CODE + CALLER);
}
