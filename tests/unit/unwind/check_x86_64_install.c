/*
 * The last instructions of gcc 12's _Unwind_Resume, from the installing call
 * on, with made-up registers; and what is none of them.
 */
#include "lib/unwind/x86_64_install.h"
#include "tests/unit/unwind/code_text.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

#define BASE	CODE_TEXT_BASE
#define FP	UINT64_C(0x7000)
#define HANDLER UINT64_C(0x4321)
#define CFA	UINT64_C(0x7800)
#define OFFSET	(CFA - (FP + 16)) /* what the call returns */
#define ALL	((1u << X86_64_N_REGS) - 1)

/* Offsets of instructions. */
enum { READ = 0x15, TEST = 0x1a, BRANCH = 0x1d, STORE = 0x28, LAST = 0x51 };

static const char code[] =
	"\x48\x8b\xb5\x68\xff\xff\xff"	   /* 00: mov -0x98(%rbp),%rsi */
	"\x48\x8b\xbd\x60\xff\xff\xff"	   /* 07: mov -0xa0(%rbp),%rdi */
	"\x31\xd2"			   /* 0e: xor %edx,%edx */
	"\xe8\x43\0\0\0"		   /* 10: call 58 */
	"\xf3\x48\x0f\x1e\xca"		   /* 15: rdsspq %rdx */
	"\x48\x85\xd2"			   /* 1a: test %rdx,%rdx */
	"\x74\x06"			   /* 1d: je 25 */
	"\xf3\x48\x0f\xae\xea\x90"	   /* 1f: incsspq %rdx; nop */
	"\x48\x89\xc1"			   /* 25: mov %rax,%rcx */
	"\x48\x89\x74\x05\x08"		   /* 28: mov %rsi,8(%rbp,%rax) */
	"\x48\x8b\x45\xc8"		   /* 2d: mov -0x38(%rbp),%rax */
	"\x48\x8d\x4c\x0d\x08"		   /* 31: lea 8(%rbp,%rcx),%rcx */
	"\x48\x8b\x55\xd0"		   /* 36: mov -0x30(%rbp),%rdx */
	"\x48\x8b\x5d\xd8\x4c\x8b\x65\xe0" /* 3a: rbx, r12 */
	"\x4c\x8b\x6d\xe8\x4c\x8b\x75\xf0" /* 42: r13, r14 */
	"\x48\x8b\x6d\x00"		   /* 4a: mov 0(%rbp),%rbp */
	"\x48\x89\xcc"			   /* 4e: mov %rcx,%rsp */
	"\x59\xff\xe1"			   /* 51: pop %rcx; jmp *%rcx */
	"\x90\x90\x90\x90"		   /* 54: */
	"\xf3\x0f\x1e\xfa\xc3";		   /* 58: endbr64; ret */

static const struct code_text text = {code, sizeof(code) - 1};
static bool stored; /* the handler's address is on the stack */

static size_t read_text(void *ctx, uint64_t addr, uint8_t *bytes, size_t n)
{
	struct code_text t = *(const struct code_text *)ctx;

	return code_text_read(&t, addr, bytes, n);
}

/* Each word of the frame is told from the others by its address. */
static bool read_word(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	*ret = addr ^ 0xff0000;
	if (addr == FP - 0x98 || (stored && addr == CFA - 8))
		*ret = HANDLER;
	else if (addr == FP - 0xa0)
		*ret = CFA;
	return addr >= FP - 0x200 && addr < CFA;
}

static struct x86_64_install machine(uint64_t at)
{
	static struct code_text t;
	struct x86_64_install m = {
		.code = read_text,
		.word = read_word,
		.ctx = &t,
		.known = ALL,
	};

	t = text;
	m.r[X86_64_RIP] = BASE + at;
	m.r[X86_64_RBP] = FP;
	m.r[X86_64_RSP] = FP - 0x200;
	m.r[X86_64_RAX] = OFFSET;
	m.r[X86_64_RSI] = HANDLER;
	stored = false;
	return m;
}

static void check_handler(struct x86_64_install *m)
{
	ck_assert(x86_64_install_run(m));
	ck_assert_uint_eq(m->r[X86_64_RIP], HANDLER);
	ck_assert_uint_eq(m->r[X86_64_RSP], CFA);
}

START_TEST(from_before_the_store)
{
	static const uint64_t places[] = {0,	7,    0xe,    0x10,
					  READ, TEST, BRANCH, 0x25};

	for (size_t i = 0; i < array_size(places); i++) {
		struct x86_64_install m = machine(places[i]);

		check_handler(&m);
		ck_assert_uint_eq(m.r[X86_64_RBP], FP ^ 0xff0000);
		ck_assert_uint_eq(m.r[X86_64_RBX], (FP - 0x28) ^ 0xff0000);
		ck_assert_uint_eq(m.r[X86_64_R12 + 2], (FP - 16) ^ 0xff0000);
		ck_assert_uint_eq(m.known & ~(1u << X86_64_RCX),
				  ALL & ~(1u << X86_64_RCX));
		ck_assert_uint_eq(m.cfa_from, i < 2 ? FP - 0xa0 : 0);
		ck_assert_uint_eq(m.pc_from, i < 1 ? FP - 0x98 : 0);
	}
}
END_TEST

START_TEST(behind_it)
{
	struct x86_64_install m = machine(0x2d);

	stored = true;
	m.r[X86_64_RCX] = OFFSET;
	m.r[X86_64_RSI] = 0;
	check_handler(&m);
	/* At pop, and at the jump. */
	m = machine(LAST);
	stored = true;
	m.r[X86_64_RSP] = CFA - 8;
	check_handler(&m);
	m = machine(LAST + 1);
	m.r[X86_64_RSP] = CFA;
	m.r[X86_64_RCX] = HANDLER;
	check_handler(&m);
}
END_TEST

/* Where the call's result is not known yet, the hook's arguments are. */
START_TEST(within_the_call)
{
	struct x86_64_install m = machine(0);

	m.known = 1u << X86_64_RBP | 1u << X86_64_RSP;
	ck_assert(x86_64_install_run(&m));
	ck_assert(!(m.known & (1u << X86_64_RIP)));
	ck_assert(!(m.known & (1u << X86_64_RSP)));
	ck_assert_uint_eq(m.cfa_from, FP - 0xa0);
	ck_assert_uint_eq(m.pc_from, FP - 0x98);
}
END_TEST

static const struct code_text others[] = {
	/* pop %rbx; pop %rbp; ret: the usual end */
	{"\x5b\x5d\xc3", 3},
	{"\xc9\xc3", 2},
	/* mov %rdx,%rsp; ret */
	{"\x48\x89\xd4\xc3", 4},
	/* lea -40(%rbp),%rsp; pop %rbp; ret */
	{"\x48\x8d\x65\xd8\x5d\xc3", 6},
	/* jmp *%rcx, by itself */
	{"\xff\xe1", 2},
	/* test %eax,%eax; je: an answer is asked for */
	{"\x85\xc0\x74\x00\x48\x89\xcc\xc3", 8},
	{"\x48\x85\xc0\x74\x00\x48\x89\xcc\xc3", 9},
	/* a call of what does something: push %rbp */
	{"\xe8\x04\0\0\0\x48\x89\xcc\xc3\x55\xc3", 11},
	/* round in circles; its last byte is missing */
	{"\xeb\xfe", 2},
	{"\x48\x89", 2},
};

START_TEST(anything_else)
{
	struct x86_64_install m = machine(0);
	struct code_text t = others[_i];

	m.ctx = &t;
	ck_assert(!x86_64_install_run(&m));
	ck_assert_uint_le(m.steps, 64);
}
END_TEST

/* At ret the instruction in front of it is what counts. */
START_TEST(the_old_end)
{
	/* nops; mov %rcx,%rsp; ret */
	struct code_text t = {
		"\x90\x90\x90\x90\x90\x90\x90\x90\x48\x89\xcc\xc3", 12};

	for (uint64_t at = 8; at <= 11; at += 3) {
		struct x86_64_install m = machine(at);

		m.ctx = &t;
		stored = true;
		m.r[X86_64_RCX] = CFA - 8;
		m.r[X86_64_RSP] = CFA - 8;
		check_handler(&m);
	}
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("unwind/x86_64_install");
	TCase *tc = tcase_create("code");

	tcase_add_test(tc, from_before_the_store);
	tcase_add_test(tc, behind_it);
	tcase_add_test(tc, within_the_call);
	tcase_add_loop_test(tc, anything_else, 0, (int)array_size(others));
	tcase_add_test(tc, the_old_end);
	suite_add_tcase(s, tc);
	return s;
}
