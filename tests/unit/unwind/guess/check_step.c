/*
 * Rules that are wrong about an instruction, or look so, on made-up stacks with this program's
 * own code.
 */
#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"

#define WORDS 64
/* The word that sp points to. */
#define TOP 32

/*
 * A function that pushes without CFI for it, as gcc -Oz writes "edi = 7"; one whose caller's
 * address the test puts there; one that has popped its return address, with CFI for it; one that
 * makes a call then; and their caller.
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
	"call pops\nhas_popped: nop\n.cfi_endproc\n");
extern const uint8_t pushed[], swapping[], popped[];
extern const uint8_t has_pushed[], has_swapped[], has_popped[], has_called[];

static struct made_up m;

static void set_up(void)
{
	made_up_start(&m, WORDS, pushed);
	m.sample->regs[SAMPLE_X86_64_RSP] += 8 * TOP;
}

static void tear_down(void)
{
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

static void check_none(void)
{
	ck_assert_int_eq(m.out.end, UNWIND_END_NO_MAP);
	ck_assert_uint_eq(m.out.n, 1);
}

FIXTURE(set_up, tear_down)

TEST(push_without_a_word)
{
	m.stack[TOP] = 7;
	m.stack[TOP + 1] = made_up_word(has_pushed);
	walk(pushed);
	check_caller(has_pushed, true);
	/* A word that follows no call to the function. */
	m.stack[TOP + 1] = made_up_word(has_swapped) + 1;
	walk(pushed);
	check_none();
}

/* An address that the rule finds is used. */
TEST(not_refuted)
{
	m.stack[TOP] = made_up_word(has_swapped);
	m.stack[TOP + 1] = made_up_word(has_pushed);
	walk(pushed);
	check_caller(has_swapped, false);
}

/* The caller's frame begins where its own ends. */
TEST(return_address_popped)
{
	m.stack[TOP - 1] = made_up_word(has_popped);
	walk(popped);
	check_caller(has_popped, false);
	/* A call has left its own return address there; its caller's is above. */
	m.stack[TOP - 1] = made_up_word(has_called);
	walk(popped);
	ck_assert_int_eq(m.out.end, UNWIND_END_BAD_CFA);
	ck_assert_uint_eq(m.out.n, 2);
}
