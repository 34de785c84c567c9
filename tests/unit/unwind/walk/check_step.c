// machine: x86_64
/*
 * Tests of steps at instructions at which the rule is wrong, or seems to be, and of steps from code
 * that was generated at run time, on made-up stacks with code of this program.
 */
#include <sys/mman.h>

#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"

#define WORDS 64
/* The word that sp points to. */
#define TOP 32

/*
 * A function that pushes without CFI for it, as gcc -Oz writes "edi = 7"; one whose caller's
 * address the test puts there; one that has popped its return address, with CFI for it; one that
 * makes a call then; their caller; a caller with a frame pointer; a function that no call enters,
 * behind a byte without CFI; 16 more of these; and a signal's trampoline.
 */
__asm__(".text\n"
	".type pushes, @function\npushes:\n.cfi_startproc\n"
	"push $7\npushed: pop %rdi\nret\n.cfi_endproc\n.size pushes, .-pushes\n"
	".type swaps, @function\nswaps:\n.cfi_startproc\n"
	"nop\nswapping: push %rcx\nret\n.cfi_endproc\n.size swaps, .-swaps\n"
	".type pops, @function\npops:\n.cfi_startproc\n"
	"pop %rcx\n.cfi_adjust_cfa_offset -8\n"
	"popped: push %rcx\n.cfi_adjust_cfa_offset 8\nret\n"
	".cfi_endproc\n.size pops, .-pops\n"
	".type calls_above, @function\ncalls_above:\n.cfi_startproc\n"
	"pop %rcx\n.cfi_adjust_cfa_offset -8\n"
	"call pops\nhas_called: jmp *%rcx\n"
	".cfi_endproc\n.size calls_above, .-calls_above\n"
	"refuted_root:\n.cfi_startproc\n.cfi_undefined rip\n"
	"call pushes\nhas_pushed: nop\n"
	"call swaps\nhas_swapped: nop\n"
	"call pops\nhas_popped: nop\n.cfi_endproc\n"
	"framed_root:\n.cfi_startproc\n.cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\n"
	"call pushes\nhas_framed: nop\n.cfi_endproc\n"
	"points:\n.cfi_startproc\ncall *%rax\nhas_pointed: ret\n.cfi_endproc\n"
	"nop\nstarts:\n.cfi_startproc\n.cfi_undefined rip\nnop\n.cfi_endproc\n"
	"starts_each:\n.rept 16\nnop\n.cfi_startproc\n.cfi_undefined "
	"rip\nnop\n.cfi_endproc\n.endr\n"
	/* A signal's trampoline: the interrupted pc is at rsp + 8, its rsp at rsp + 16. */
	".cfi_startproc\n.cfi_signal_frame\n"
	".cfi_escape 0x0f, 3, 0x77, 16, 0x06\n.cfi_escape 0x10, 16, 2, 0x77, 8\n"
	"nop\ntrampoline: nop\nin_trampoline: nop\n.cfi_endproc\n"
	/* Without CFI and without a symbol: behind a call, and in front of one and the end. */
	".section .without_cfi, \"ax\"\n"
	"call pops\n.Lnameless: call pops\npop %rbx\nret\n"
	".data\nnameless: .quad .Lnameless\n.text\n");
extern const uint8_t pushed[], swapping[], popped[];
extern const uint8_t has_pushed[], has_swapped[], has_popped[], has_called[], has_framed[];
extern const uint8_t starts[], starts_each[], has_pointed[], trampoline[], in_trampoline[];
extern const uint8_t *const nameless;

/* Code without a file, as if the program had generated it. */
#define MADE_BYTES 4096
static uint8_t *made;

static struct made_up m;

static void set_up(void)
{
	made = mmap(NULL, MADE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(made, MAP_FAILED);
	made_up_start(&m, WORDS, pushed);
	m.sample->regs[SAMPLE_X86_64_RSP] += 8 * TOP;
}

static void tear_down(void)
{
	(void)munmap(made, MADE_BYTES);
	made_up_end(&m);
}

static void walk(const uint8_t *pc)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(pc);
	made_up_walk(&m);
}

static void check_caller(const uint8_t *ra, bool by_heuristic)
{
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.n, 2);
	ck_assert_uint_eq(m.out.frames[1].addr, made_up_word(ra));
	ck_assert_int_eq(m.out.frames[1].by_heuristic, by_heuristic);
}

FIXTURE(set_up, tear_down)

TEST(a_push_without_cfi_ends_the_stack)
{
	m.stack[TOP] = 7;
	m.stack[TOP + 1] = made_up_word(has_pushed);
	walk(pushed);
	ck_assert_int_eq(m.out.end, UNWIND_END_NO_MAP);
	ck_assert_uint_eq(m.out.n, 1);
}

/*
 * As after makecontext(3). The byte before the function has no CFI. The address that is shown is
 * one greater, so that the byte before it is in the function.
 */
TEST(a_stack_whose_return_address_is_a_function_ends_there)
{
	m.sample->regs_known |= UINT64_C(1) << SAMPLE_X86_64_RBP;
	m.sample->regs[SAMPLE_X86_64_RBP] = MADE_UP_STACK + (TOP + 8) * 8;
	m.stack[TOP + 9] = made_up_word(has_pushed);
	m.stack[TOP] = made_up_word(starts);
	walk(swapping);
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.n, 2);
	ck_assert_uint_eq(m.out.frames[1].addr, made_up_word(starts) + 1);
	ck_assert(m.out.frames[1].by_heuristic && m.out.has_heuristic);
}

/* CFI is compiled in parts of 16 functions, so one of these 16 functions is the first of its part.
 */
TEST(a_stack_ends_at_a_function_at_any_place_in_its_part)
{
	for (size_t i = 0; i < 16; i++) {
		const uint8_t *function = starts_each + 2 * i + 1;

		m.stack[TOP] = made_up_word(function);
		walk(swapping);
		ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
		ck_assert_uint_eq(m.out.n, 2);
		ck_assert_uint_eq(m.out.frames[1].addr, made_up_word(function) + 1);
	}
}

/*
 * A handler returns to the trampoline, which a second signal interrupts. No call is before either
 * address, so what is shown is one greater: of the first because the handler returns to it, of the
 * others because they are a pc.
 */
static void walk_through_trampolines(void)
{
	m.stack[TOP] = made_up_word(trampoline);
	m.stack[TOP + 2] = made_up_word(in_trampoline);
	m.stack[TOP + 3] = MADE_UP_STACK + (TOP + 8) * 8;
	m.stack[TOP + 9] = made_up_word(pushed);
	m.stack[TOP + 10] = MADE_UP_STACK + (TOP + 16) * 8;
	m.stack[TOP + 16] = made_up_word(has_pushed);
	walk(swapping);
	ck_assert_uint_ge(m.out.n, 3);
	ck_assert_uint_eq(m.out.frames[1].addr, made_up_word(trampoline) + 1);
	ck_assert_uint_eq(m.out.frames[2].addr, made_up_word(in_trampoline) + 1);
}

TEST(a_trampoline_that_a_signal_interrupts_is_shown_at_its_pc)
{
	walk_through_trampolines();
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.n, 5);
	ck_assert_uint_eq(m.out.frames[3].addr, made_up_word(pushed) + 1);
	ck_assert_uint_eq(m.out.frames[4].addr, made_up_word(has_pushed));
}

TEST(a_trampoline_whose_registers_cannot_be_read_is_shown_at_its_pc)
{
	m.sample->stack_size = (TOP + 9) * 8;
	walk_through_trampolines();
	ck_assert_int_eq(m.out.end, UNWIND_END_UNREADABLE);
	ck_assert_uint_eq(m.out.n, 3);
}

TEST(a_return_address_that_the_rule_finds_is_used)
{
	m.stack[TOP] = made_up_word(has_swapped);
	m.stack[TOP + 1] = made_up_word(has_pushed);
	walk(pushed);
	check_caller(has_swapped, false);
}

/* The frame is empty: the stack pointer of the caller is equal. */
TEST(a_popped_return_address_is_valid_only_at_the_pc)
{
	m.stack[TOP - 1] = made_up_word(has_popped);
	walk(popped);
	check_caller(has_popped, false);
	/* A call has written its return address there, so the frame of the caller is not empty. */
	m.stack[TOP - 1] = made_up_word(has_called);
	walk(popped);
	ck_assert_int_eq(m.out.end, UNWIND_END_BAD_CFA);
	ck_assert_uint_eq(m.out.n, 2);
}

/* The index of the word that the frame pointer of the generated code points to. */
#define FRAME 40

/*
 * Walks from generated code whose frame pointer is set; next is the word that it has saved. Checks
 * that the walk ends with n frames.
 */
static void walk_from_generated(uint64_t next, const uint8_t *ra, size_t n, enum unwind_end end)
{
	m.sample->regs_known |= UINT64_C(1) << SAMPLE_X86_64_RBP;
	m.sample->regs[SAMPLE_X86_64_RBP] = MADE_UP_STACK + FRAME * 8;
	m.stack[FRAME] = next;
	m.stack[FRAME + 1] = made_up_word(ra);
	walk(made);
	ck_assert_int_eq(m.out.end, end);
	ck_assert_uint_eq(m.out.n, n);
	if (n > 1) {
		ck_assert_uint_eq(m.out.frames[1].addr, made_up_word(ra));
		ck_assert(m.out.frames[1].by_heuristic);
	}
}

/* What a caller may have in rbp that does not use it as a frame pointer. */
static const uint64_t saved[] = {
	0, 1, UINT64_MAX, MADE_UP_STACK, MADE_UP_STACK + FRAME * 8, MADE_UP_STACK + WORDS * 8,
};

TESTS(a_caller_of_generated_code_has_anything_in_its_frame_pointer, array_size(saved))
{
	walk_from_generated(saved[_i], has_pushed, 2, UNWIND_END_ROOT);
}

/* The words that cannot be a frame pointer above the frame. */
static const uint64_t refuted[] = {1, MADE_UP_STACK, MADE_UP_STACK + FRAME * 8};

TESTS(a_word_that_no_call_left_is_no_return_address, array_size(refuted))
{
	walk_from_generated(refuted[_i], has_swapped + 1, 1, UNWIND_END_NO_CFI);
}

TESTS(a_caller_with_a_frame_pointer_has_it_above, array_size(refuted))
{
	walk_from_generated(refuted[_i], has_framed, 1, UNWIND_END_NO_CFI);
	walk_from_generated(refuted[_i], made + 16, 1, UNWIND_END_NO_CFI);
	walk_from_generated(refuted[_i], NULL, 1, UNWIND_END_NO_CFI);
}

/*
 * The path of the code would lead to a caller without one of its own, so the frame pointer is used,
 * in each walk: the memo of the first walk must not have the steps by which the path was refuted.
 */
TEST(a_refuted_path_leaves_nothing_in_the_memo)
{
	m.sample->regs_known |= UINT64_C(1) << SAMPLE_X86_64_RBP;
	m.sample->regs[SAMPLE_X86_64_RBP] = MADE_UP_STACK + FRAME * 8;
	m.stack[TOP] = made_up_word(nameless);
	m.stack[TOP + 2] = made_up_word(has_pointed);
	m.stack[TOP + 3] = 1;
	m.stack[FRAME + 1] = made_up_word(has_pushed);
	for (int i = 0; i < 2; i++) {
		walk(swapping);
		ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
		ck_assert_uint_eq(m.out.n, 3);
		ck_assert_uint_eq(m.out.frames[1].addr, made_up_word(nameless));
		ck_assert_uint_eq(m.out.frames[2].addr, made_up_word(has_pushed));
		ck_assert(m.out.frames[2].by_heuristic);
	}
}

TEST(generated_code_calls_generated_code)
{
	m.stack[FRAME + 4] = UINT64_MAX;
	m.stack[FRAME + 5] = made_up_word(has_pushed);
	walk_from_generated(MADE_UP_STACK + (FRAME + 4) * 8, made + 16, 3, UNWIND_END_ROOT);
}

/* Without frame pointers it may have any value in the register. */
TEST(generated_code_is_not_the_root)
{
	walk_from_generated(0, made + 16, 2, UNWIND_END_NO_CFI);
}
