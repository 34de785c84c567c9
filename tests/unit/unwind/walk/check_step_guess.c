// machine: x86_64
/*
 * Made-up stacks through the code of a file without call frame information: a path through the
 * code is used only if the stack confirms it.
 */
#include "lib/unwind/unwind.h"

#include <string.h>

#include "lib/unwind/cpu.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"

#define CODE  UINT64_C(0x400000)
#define STACK MADE_UP_STACK
#define WORDS 64

/* Offsets in the file. The first page is its header. */
#define RET	     0x1000 /* a function that only returns */
#define NEVER	     0x1100 /* behind a call that does not return: another function */
#define CALLER	     0x1200
#define TRAP	     0x1300 /* rt_sigreturn's trampoline */
#define TRAP_IN	     (TRAP + 7)
#define POINTED	     0x1400 /* behind an indirect call */
#define BY_REGISTER  0x1500 /* the end of a function that aligns its stack */
#define BY_WORD	     0x1520 /* another one */
#define LOOPS	     0x1540 /* behind a call, and in front of one and the end */
#define TAIL	     0x1800 /* a function that jumps to the next one, and has a symbol */
#define STATIC	     0x1900 /* the next one, which makes a call and has no symbol */
#define LARGE	     0x1c00 /* behind the call in a function with a large frame */
#define THREAD_START 0x1680 /* behind the system call of musl's clone */
#define CODE_END     0x2000

#define BIT(n) (UINT64_C(1) << (n))

static const char maps_text[] = "400000-402000 r-xp 00000000 fe:01 1 /a\n"
				"7ffff0000000-7ffff0008000 rw-p 00000000 00:00 0 \n";

static const uint8_t call[] = {0xe8, 0, 0, 0, 0};

/* Code that ends with a call or jump to another offset. */
static void put_far(uint8_t *file, size_t end, uint8_t op, size_t to)
{
	const int32_t distance = (int32_t)to - (int32_t)end;

	file[end - 5] = op;
	memcpy(file + end - 4, &distance, sizeof(distance));
}

static const uint8_t thread_start[] = {0x85, 0xc0, 0x75, 0x11, 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1,
				       0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05, 0xf4, 0xc3};

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	static uint8_t file[CODE_END];

	(void)ctx;
	(void)end;
	ck_assert_uint_eq(start, CODE);
	file[RET] = 0xc3;
	memcpy(file + NEVER - sizeof(call), call, sizeof(call));
	file[NEVER] = 0xc3;
	memcpy(file + CALLER - sizeof(call), call, sizeof(call));
	memcpy(file + TRAP, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	memcpy(file + POINTED - 2, "\xff\xd0", 2);
	/* mov %rsi,%rsp; pop %rbx; ret; and mov 16(%rsp),%rsp; ret */
	memcpy(file + BY_REGISTER, "\x48\x89\xf4\x5b\xc3", 5);
	memcpy(file + BY_WORD, "\x48\x8b\x64\x24\x10\xc3", 6);
	/* call; call; pop %rbx; ret */
	memcpy(file + LOOPS - sizeof(call), call, sizeof(call));
	memcpy(file + LOOPS, "\xe8\0\0\0\0\x5b\xc3", 7);
	put_far(file, TAIL + 5, 0xe9, STATIC);
	/* push %rbx; call; pop %rbx; ret */
	memcpy(file + STATIC, "\x53\xe8\0\0\0\0\x5b\xc3", 8);
	/* add $n,%rsp; pop %rbp; ret */
	memcpy(file + LARGE - sizeof(call), call, sizeof(call));
	memcpy(file + LARGE, "\x48\x81\xc4\0\0\2\0\x5d\xc3", 9);
	memcpy(file + THREAD_START, thread_start, sizeof(thread_start));
	*ret_fd = made_up_file(file + MADE_UP_CODE, CODE_END - MADE_UP_CODE, TAIL, 1);
	return 0;
}

static const struct unwind_files files = {.image = image};

static struct made_up m;

static void set_up(void)
{
	made_up_map(&m, WORDS, maps_text, &files);
	m.sample->regs_known |= BIT(SAMPLE_X86_64_RBP);
	m.sample->regs[SAMPLE_X86_64_RBP] = STACK + 10 * 8;
	m.sample->regs[SAMPLE_X86_64_RIP] = CODE + RET;
	/* The return address beside the saved frame pointer. */
	m.stack[11] = CODE + CALLER;
}

static void tear_down(void)
{
	made_up_end(&m);
}

static void walk(void)
{
	made_up_walk(&m);
}

static void walk_to(size_t n, uint64_t caller)
{
	made_up_check(&m, n, caller);
}

FIXTURE(set_up, tear_down)

TEST(a_path_to_a_ret_is_used_if_the_stack_confirms_it)
{
	m.stack[0] = CODE + NEVER;
	m.stack[1] = CODE + CALLER;
	walk_to(4, CODE + NEVER);
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.frames[2].addr, CODE + CALLER);
	ck_assert(m.out.frames[2].by_heuristic);
	ck_assert_uint_eq(m.out.frames[3].addr, CODE + CALLER);
}

/* No call precedes these words: they are data of the function. */
static const uint64_t locals[] = {0, 1, STACK, CODE + RET, UINT64_MAX};

TESTS(a_path_through_another_function_is_not_used, (array_size(locals)))
{
	m.stack[0] = CODE + NEVER;
	m.stack[1] = locals[_i];
	walk_to(3, CODE + NEVER);
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.frames[2].addr, CODE + CALLER);
}

/*
 * The copy ends before rip of the outer signal frame. The stack pointer that the walk knows by then
 * is that of the interrupted code.
 */
TEST(a_signal_frame_that_is_cut_off_asks_for_more_of_its_stack)
{
	memset(m.stack, 0x55, WORDS * 8);
	m.stack[0] = CODE + TRAP;
	m.stack[1 + 160 / 8] = STACK + 40 * 8; /* rsp */
	m.stack[1 + 168 / 8] = CODE + RET;     /* rip */
	m.stack[40] = CODE + TRAP;
	m.sample->stack_size = (41 + 168 / 8) * 8;
	walk();
	ck_assert_int_eq(m.out.end, UNWIND_END_UNREADABLE);
	ck_assert_uint_eq(m.out.n, 4);
	/* More of this stack is needed, and no other stack. */
	ck_assert_uint_eq(m.out.second, 0);
	ck_assert_uint_eq(m.out.missing, STACK + (41 + 176 / 8) * 8);
}

#define RSI 4 /* DWARF's number */

/* Where the register points to, where the stack pointer does, and whether a caller is found so. */
static const struct {
	size_t base, sp;
	bool found;
} aligned[] = {
	{16, 0, true}, {16, 4, true}, {4, 4, true}, {16, 1, false}, {2, 4, false}, {63, 4, false},
};

TESTS(a_register_has_the_stack_pointer_from_before_its_alignment, array_size(aligned))
{
	m.sample->regs_known |= BIT(RSI);
	m.sample->regs[RSI] = STACK + aligned[_i].base * 8;
	m.sample->regs[SAMPLE_X86_64_RSP] = STACK + aligned[_i].sp * 8;
	m.sample->regs[SAMPLE_X86_64_RIP] = CODE + BY_REGISTER;
	if (aligned[_i].base + 1 < WORDS)
		m.stack[aligned[_i].base + 1] = CODE + POINTED;
	walk();
	ck_assert_uint_ge(m.out.n, 2);
	ck_assert_uint_eq(m.out.frames[1].addr, CODE + (aligned[_i].found ? POINTED : CALLER));
	/* A thread that was copied without a stop has no such register. */
	m.sample->regs_known &= ~BIT(RSI);
	walk();
	ck_assert_uint_eq(m.out.frames[1].addr, CODE + CALLER);
}

TEST(a_word_has_the_stack_pointer_from_before_its_alignment)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = CODE + BY_WORD;
	m.stack[2] = STACK + 20 * 8;
	m.stack[20] = CODE + POINTED;
	walk_to(2, CODE + POINTED);
	ck_assert(m.out.frames[1].by_heuristic);
	/* Not above the stack pointer, and not on the stack. */
	m.stack[2] = STACK - 8;
	walk_to(2, CODE + CALLER);
	m.stack[2] = UINT64_MAX;
	walk_to(2, CODE + CALLER);
}

/* Its start is unknown, and the called function may not return. */
TEST(a_path_with_a_call_is_confirmed_by_the_root)
{
	m.stack[0] = CODE + LOOPS;
	m.stack[2] = CODE + POINTED;
	walk_to(4, CODE + LOOPS);
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.frames[2].addr, CODE + POINTED);
	ck_assert_uint_eq(m.out.frames[3].addr, CODE + CALLER);
	/* From there the walk finds nothing. */
	m.sample->regs[SAMPLE_X86_64_RBP] = 1;
	walk_to(2, CODE + LOOPS);
	ck_assert_int_eq(m.out.end, UNWIND_END_NO_CFI);
}

/* The handler has returned: the pc is at either instruction of the trampoline. */
static const uint64_t in_trap[] = {TRAP, TRAP_IN};

TESTS(in_the_trampoline_the_interrupted_frame_is_found, (array_size(in_trap)))
{
	m.sample->regs[SAMPLE_X86_64_RIP] = CODE + in_trap[_i];
	m.stack[160 / 8] = STACK + 40 * 8; /* rsp */
	m.stack[168 / 8] = CODE + RET;	   /* rip */
	m.stack[40] = CODE + CALLER;
	walk();
	ck_assert_uint_ge(m.out.n, 3);
	ck_assert_uint_eq(m.out.frames[0].addr, CODE + in_trap[_i]);
	ck_assert_uint_eq(m.out.frames[1].addr, CODE + RET + 1);
	ck_assert_uint_eq(m.out.frames[2].addr, CODE + CALLER);
}

/* The start of the function, which the symbol gives, confirms the path behind its call. */
TEST(a_static_function_is_found_by_the_symbol_of_its_tail_call)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = CODE + STATIC + 1;
	m.sample->regs[SAMPLE_X86_64_RBP] = 1;
	m.stack[1] = CODE + POINTED;
	walk_to(2, CODE + POINTED);
}

TEST(a_path_finds_the_caller_of_a_frame_of_128_kib)
{
	static union {
		struct record_sample record;
		uint8_t bytes[sizeof(struct record_sample) + 256 * 1024];
	} big;
	uint64_t *words = (uint64_t *)(void *)big.record.stack;

	big.record = *m.sample;
	big.record.stack_size = 256 * 1024;
	words[0] = CODE + LARGE;
	words[1 + 16384] = 1; /* the caller's rbp, unchanged */
	words[1 + 16384 + 1] = CODE + CALLER;
	OK(unwind_walk(m.space, &big.record, sizeof(big), 16, &m.out));
	ck_assert_uint_eq(m.out.n, 3);
	ck_assert_uint_eq(m.out.frames[2].addr, CODE + CALLER);
}

/* All other registers are those of the parent; the stack leads to the parent's caller. */
static const struct {
	uint64_t known, rax, rcx;
	bool is_new_thread;
} thread_starts[] = {
	{BIT(X86_64_RAX) | BIT(X86_64_RCX), 0, THREAD_START, true},
	{BIT(X86_64_RAX) | BIT(X86_64_RCX), 0, THREAD_START - 20, true},
	/* The parent; a thread that was copied without a stop; no system call just before. */
	{BIT(X86_64_RAX) | BIT(X86_64_RCX), 7, THREAD_START, false},
	{BIT(X86_64_RCX), 0, THREAD_START, false},
	{BIT(X86_64_RAX), 0, THREAD_START, false},
	{BIT(X86_64_RAX) | BIT(X86_64_RCX), 0, THREAD_START - 40, false},
	{BIT(X86_64_RAX) | BIT(X86_64_RCX), 0, THREAD_START + 1, false},
};

TESTS(a_new_thread_is_the_root_only_just_after_its_system_call, (array_size(thread_starts)))
{
	m.stack[0] = CODE + CALLER;
	m.sample->regs_known |= thread_starts[_i].known;
	m.sample->regs[SAMPLE_X86_64_RIP] = CODE + THREAD_START;
	m.sample->regs[X86_64_RAX] = thread_starts[_i].rax;
	m.sample->regs[X86_64_RCX] = CODE + thread_starts[_i].rcx;
	walk();
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	if (thread_starts[_i].is_new_thread)
		ck_assert_uint_eq(m.out.n, 1);
	else
		ck_assert_uint_gt(m.out.n, 1);
}
