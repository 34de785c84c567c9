/* Tests of the decoder and of paths, with instructions and code given as bytes. */
#include "lib/unwind/cpu/x86_64_path.h"
#include "tests/unit/unwind/code_text.h"

#include "lib/base/util.h"
#include "lib/unwind/cpu/x86_64_insn.h"
#include "tests/unit/suite.h"

static const struct {
	const char *bytes;
	size_t n;
	struct x86_64_insn insn;
} insns[] = {
	{"\x90", 1, {.size = 1}},
	{"\x55", 1, {.size = 1, .sp = -8, .saves_fp = true}},
	{"\x41\x55", 2, {.size = 2, .sp = -8}},
	{"\x5d", 1, {.size = 1, .sp = 8, .loads_fp = true}},
	{"\x41\x5d", 2, {.size = 2, .sp = 8}},
	{"\x5c", 1, {.size = 1, .sp = 8, .sp_lost = true}},
	{"\x6a\x01", 2, {.size = 2, .sp = -8}},
	{"\x68\1\2\3\4", 5, {.size = 5, .sp = -8}},
	{"\xff\x74\x24\x30", 4, {.size = 4, .sp = -8}},
	/* sub, add, and, cmp of the stack pointer */
	{"\x48\x83\xec\x10", 4, {.size = 4, .sp = -16}},
	{"\x48\x81\xc4\0\1\0\0", 7, {.size = 7, .sp = 256}},
	{"\x48\x83\xe4\xc0", 4, {.size = 4, .sp_lost = true}},
	{"\x48\x83\xfc\x10", 4, {.size = 4}},
	{"\x49\x83\xec\x10", 4, {.size = 4}}, /* of r12 */
	/* lea 40(%rsp),%rsp; lea 40(%rbp),%rsp */
	{"\x48\x8d\x64\x24\x28", 5, {.size = 5, .sp = 40}},
	{"\x48\x8d\x65\x28", 4, {.size = 4, .sp_lost = true}},
	/* mov %rbx,%rsp; mov %rsp,%rbx; mov 16(%rsp),%rbp */
	{"\x48\x89\xdc", 3, {.size = 3, .sp_lost = true, .sp_is_copied = true, .sp_from = 3}},
	/* mov %r12,%rsp in both forms; mov %ebx,%esp; mov 64(%rsp),%rsp; mov 64(%rbx),%rsp */
	{"\x4c\x89\xe4", 3, {.size = 3, .sp_lost = true, .sp_is_copied = true, .sp_from = 12}},
	{"\x49\x8b\xe4", 3, {.size = 3, .sp_lost = true, .sp_is_copied = true, .sp_from = 12}},
	{"\x89\xdc", 2, {.size = 2, .sp_lost = true}},
	{"\x48\x8b\x64\x24\x40", 5, {.size = 5, .sp_lost = true, .loads_sp = true, .sp_at = 64}},
	{"\x48\x8b\x63\x40", 4, {.size = 4, .sp_lost = true}},
	{"\x48\x89\xe3", 3, {.size = 3}},
	{"\x48\x8b\x6c\x24\x10", 5, {.size = 5, .loads_fp = true, .fp_at = 16}},
	{"\xc9", 1, {.size = 1, .sp_lost = true}},
	{"\xc3", 1, {.size = 1, .kind = X86_64_INSN_RET}},
	{"\xe8\1\0\0\0", 5, {5, .kind = X86_64_INSN_CALL, .distance = 1}},
	{"\xeb\xfe", 2, {2, .kind = X86_64_INSN_JUMP, .distance = -2}},
	{"\x74\x02", 2, {2, .kind = X86_64_INSN_BRANCH, .distance = 2}},
	{"\x0f\x84\0\1\0\0", 6, {6, .kind = X86_64_INSN_BRANCH, .distance = 256}},
	{"\xff\xe0", 2, {2, .kind = X86_64_INSN_END}},
	{"\xff\xd0", 2, {2, .kind = X86_64_INSN_CALL}},
	{"\xf4", 1, {1, .kind = X86_64_INSN_END}},
	{"\x0f\x0b", 2, {2, .kind = X86_64_INSN_END}},
	/* movabs; testb $1,(%rax); imul with a constant of 16 bits */
	{"\x48\xb8\1\2\3\4\5\6\7\10", 10, {.size = 10}},
	{"\xf6\x00\x01", 3, {.size = 3}},
	{"\x66\x69\xc0\1\2", 5, {.size = 5}},
	/* mov %fs:0x28,%rax; pshufb; palignr; vpxor; vpalignr */
	{"\x64\x48\x8b\x04\x25\x28\0\0\0", 9, {.size = 9}},
	{"\x66\x0f\x38\x00\xc1", 5, {.size = 5}},
	{"\x66\x0f\x3a\x0f\xc1\x08", 6, {.size = 6}},
	{"\xc5\xf9\xef\xc0", 4, {.size = 4}},
	{"\xc4\xe3\x71\x0f\xc2\x08", 6, {.size = 6}},
	/*
	 * AVX-512: vmovdqu64 64(%rsi),%zmm16, whose displacement is one byte;
	 * 65(%rsi), where it is four; vpternlogd $150; vpminub with %zmm31;
	 * vpsrlq $1; vcvtuqq2pd, which 0f 7a was not before; vaddph
	 */
	{"\x62\xe1\xfe\x48\x6f\x46\x01", 7, {.size = 7}},
	{"\x62\xe1\xfe\x48\x6f\x86\x41\0\0\0", 10, {.size = 10}},
	{"\x62\xf3\x75\x48\x25\xc2\x96", 7, {.size = 7}},
	{"\x62\x01\x05\x40\xda\xff", 6, {.size = 6}},
	{"\x62\xf1\xfd\x48\x73\xd0\x01", 7, {.size = 7}},
	{"\x62\xf1\xfe\x48\x7a\xc0", 6, {.size = 6}},
	{"\x62\xf5\x74\x48\x58\xc2", 6, {.size = 6}},
};

TESTS(an_instruction_has_its_size_and_its_effect_on_the_stack, array_size(insns))
{
	const uint8_t *code = (const uint8_t *)insns[_i].bytes;
	const struct x86_64_insn *e = &insns[_i].insn;
	struct x86_64_insn insn;

	ck_assert(x86_64_insn_read(code, insns[_i].n, &insn));
	ck_assert_uint_eq(insn.size, e->size);
	ck_assert_int_eq(insn.kind, e->kind);
	ck_assert_int_eq(insn.distance, e->kind == X86_64_INSN_OTHER || e->kind == X86_64_INSN_RET
						? insn.distance
						: e->distance);
	ck_assert_int_eq(insn.sp, e->sp);
	ck_assert(insn.sp_is_copied == e->sp_is_copied && insn.sp_from == e->sp_from &&
		  insn.loads_sp == e->loads_sp && insn.sp_at == e->sp_at);
	ck_assert(insn.sp_lost == e->sp_lost && insn.loads_fp == e->loads_fp &&
		  insn.saves_fp == e->saves_fp && insn.fp_at == e->fp_at);
	/* Without the last byte the instruction is refused. */
	for (size_t n = 0; n < insns[_i].n; n++)
		ck_assert(!x86_64_insn_read(code, n, &insn));
}

#define SAME  X86_64_PATH_FP_SAME
#define BY_SP X86_64_BASE_SP, 0

static const struct {
	struct code_text text;
	bool found;
	struct x86_64_path path;
} paths[] = {
	/* add $24,%rsp; pop %rbx; pop %rbp; ret */
	{{"\x48\x83\xc4\x18\x5b\x5d\xc3", 7}, true, {40, 32, false, BY_SP}},
	/* jmp over a call to: ret */
	{{"\xeb\x05\xe8\0\0\0\0\xc3", 8}, true, {0, SAME, false, BY_SP}},
	/* je, behind a call of no return, leads to pop %rbx; ret */
	{{"\x74\x06\xe8\0\0\0\0\xf4\x5b\xc3", 10}, true, {8, SAME, false, BY_SP}},
	/* call; add $8,%rsp; ret */
	{{"\xe8\0\0\0\0\x48\x83\xc4\x08\xc3", 10}, true, {8, SAME, true, BY_SP}},
	/* push; push; add $16,%rsp; pop %rbp; ret */
	{{"\x6a\0\x6a\0\x48\x83\xc4\x10\x5d\xc3", 10}, true, {8, 0, false, BY_SP}},
	/* vmovdqu64 %zmm16,64(%rsp); vzeroupper; pop %rbx; ret */
	{{"\x62\xe1\xfe\x48\x7f\x44\x24\x01\xc5\xf8\x77\x5b\xc3", 13},
	 true,
	 {8, SAME, false, BY_SP}},
	/* pop %rbx; jmp *n(%rip): of a stub, or instead of a call and a ret */
	{{"\x5b\xff\x25\0\0\0\0", 7}, true, {8, SAME, false, BY_SP}},
	/*
	 * A PLT's entry, not bound yet: jmp *n(%rip); push $0; jmp to its
	 * first entry: push n(%rip); jmp *n(%rip)
	 */
	{{"\xff\x25\0\0\0\0\x68\0\0\0\0\xe9\0\0\0\0"
	  "\xff\x35\0\0\0\0\xff\x25\0\0\0\0",
	  28},
	 true,
	 {0, SAME, false, BY_SP}},
	/* push n(%rip); ret: to the pushed address */
	{{"\xff\x35\0\0\0\0\xc3", 7}, false, {0}},
	/* push %rbp; push %rbx; pop %rbx; pop %rbp; ret: rbp has its own value again */
	{{"\x55\x53\x5b\x5d\xc3", 5}, true, {0, SAME, false, BY_SP}},
	/* pop %rbp; push %rbp; pop %rbp; ret: the caller's, twice */
	{{"\x5d\x55\x5d\xc3", 4}, true, {8, 0, false, BY_SP}},
	/* add $0x7fff0,%rsp; pop %rbp; ret; and 16 bytes more */
	{{"\x48\x81\xc4\xf0\xff\7\0\x5d\xc3", 9}, true, {0x7fff8, 0x7fff0, false, BY_SP}},
	{{"\x48\x81\xc4\0\0\x08\0\x5d\xc3", 9}, false, {0}},
	/* pop %rbp; add $2032,%rsp; ret; and 8 bytes more */
	{{"\x5d\x48\x81\xc4\xf0\7\0\0\xc3", 9}, true, {2040, 0, false, BY_SP}},
	{{"\x5d\x48\x81\xc4\xf8\7\0\0\xc3", 9}, false, {0}},
	/* mov %rsi,%rsp; pop %rbx; pop %rbp; ret: rsi has DWARF's number 4 */
	{{"\x48\x89\xf4\x5b\x5d\xc3", 6}, true, {16, 8, false, X86_64_BASE_VALUE, 4}},
	/* add $8,%rsp; mov 64(%rsp),%rsp; ret; and from the limit on */
	{{"\x48\x83\xc4\x08\x48\x8b\x64\x24\x40\xc3", 10},
	 true,
	 {0, SAME, false, X86_64_BASE_WORD, 72}},
	{{"\x48\x8b\xa4\x24\0\x80\0\0\xc3", 9}, false, {0}},
	/* mov %rbx,%rsp twice; after pop %rbp; before more pops than there are registers */
	{{"\x48\x89\xdc\x48\x89\xdc\xc3", 7}, false, {0}},
	{{"\x5d\x48\x89\xdc\xc3", 5}, false, {0}},
	{{"\x48\x89\xdc\x48\x83\xc4\x78\xc3", 8}, true, {120, SAME, false, X86_64_BASE_VALUE, 3}},
	{{"\x48\x89\xdc\x48\x83\xec\x80\xc3", 8}, false, {0}},
	/* leave; ret */
	{{"\xc9\xc3", 2}, false, {0}},
	/* an endless loop; the end of the code; sp lower than at the start */
	{{"\x74\xfe\xeb\xfc", 4}, false, {0}},
	{{"\x90", 1}, false, {0}},
	{{"\x50\xc3", 2}, false, {0}},
};

TESTS(a_path_to_a_ret_gives_the_offsets_of_ra_and_fp, array_size(paths))
{
	struct code_text text = paths[_i].text;
	struct x86_64_code code = {code_text_read, &text, 0, 1000};
	struct x86_64_path path = {0};

	ck_assert(x86_64_path_to_ret(&code, CODE_TEXT_BASE, &path) == paths[_i].found);
	ck_assert_uint_lt(code.steps, 100);
	if (!paths[_i].found)
		return;
	ck_assert_uint_eq(path.ra, paths[_i].path.ra);
	ck_assert_uint_eq(path.fp, paths[_i].path.fp);
	ck_assert(path.has_call == paths[_i].path.has_call);
	ck_assert_int_eq(path.base, paths[_i].path.base);
	ck_assert_uint_eq(path.base_at, paths[_i].path.base_at);
}

/*
 * push %rbp; push %rbx; sub $24,%rsp; je 1f; add $24,%rsp; pop; pop; ret; 1:
 * push $0; call; (here)
 */
#define THERE 22
static const char there[] = "\x55\x53\x48\x83\xec\x18\x74\x07\x48\x83\xc4\x18"
			    "\x5b\x5d\xc3\x6a\0\xe8\0\0\0\0\x90";

TEST(a_path_from_the_start_gives_the_offsets_of_ra_and_fp)
{
	struct code_text text = {there, sizeof(there) - 1};
	struct x86_64_code code = {code_text_read, &text, 0, 1000};
	struct x86_64_path path;

	ck_assert(x86_64_path_from_start(&code, CODE_TEXT_BASE, CODE_TEXT_BASE + THERE, &path));
	ck_assert_uint_eq(path.ra, 8 + 8 + 24 + 8);
	ck_assert_uint_eq(path.fp, 8 + 24 + 8);
	/* Into the middle of an instruction; and with too small a limit of steps. */
	ck_assert(
		!x86_64_path_from_start(&code, CODE_TEXT_BASE, CODE_TEXT_BASE + THERE - 1, &path));
	code.steps = code.steps_max - 3;
	ck_assert(!x86_64_path_from_start(&code, CODE_TEXT_BASE, CODE_TEXT_BASE + THERE, &path));
	ck_assert_uint_eq(code.steps, code.steps_max);
}

static const struct {
	struct code_text text;
	uint64_t to;
	bool found;
	struct x86_64_path path;
} theres[] = {
	/* Tail calls; and an entry of a PLT: jmp *n(%rip); push $0; (here) */
	{{"\x53\x5b\xff\xe0\x90", 5}, 4, false, {0}},
	{{"\x53\xff\x25\0\0\0\0\x90", 8}, 7, false, {0}},
	{{"\xff\x25\0\0\0\0\x68\0\0\0\0\x90", 12}, 11, true, {8, SAME, false, BY_SP}},
	/*
	 * sub $8,%rsp; je to add; je to (here); call; behind it another
	 * function jumps to the start, where one came from already
	 */
	{{"\x48\x83\xec\x08\x74\x0d\x90\xe8\0\0\0\0\xeb\xf2\x90\x90\x90"
	  "\x90\x90\x90",
	  20},
	 19,
	 true,
	 {8, SAME, false, BY_SP}},
	/* pop; pop; push %rbp: not among its own; sub $24,%rsp */
	{{"\x58\x58\x55\x48\x83\xec\x18\x90", 8}, 7, true, {16, SAME, false, BY_SP}},
};

TESTS(paths_from_the_start_follow_jumps_within_the_function, array_size(theres))
{
	struct code_text text = theres[_i].text;
	struct x86_64_code code = {code_text_read, &text, 0, 1000};
	struct x86_64_path path;

	ck_assert(x86_64_path_from_start(&code, CODE_TEXT_BASE, CODE_TEXT_BASE + theres[_i].to,
					 &path) == theres[_i].found);
	ck_assert_uint_lt(code.steps, 20);
	if (!theres[_i].found)
		return;
	ck_assert_uint_eq(path.ra, theres[_i].path.ra);
	ck_assert_uint_eq(path.fp, theres[_i].path.fp);
}

/* A path that reaches a visited instruction ends. */
TEST(each_instruction_is_decoded_once)
{
	/* Ten times je to the end; 100 nops. */
	static uint8_t bytes[20 + 100];
	struct code_text text = {bytes, sizeof(bytes)};
	struct x86_64_code code = {code_text_read, &text, 0, 1000};
	struct x86_64_path path;

	memset(bytes, 0x90, sizeof(bytes));
	for (size_t i = 0; i < 20; i += 2)
		memcpy(bytes + i, "\x74\x18", 2);
	ck_assert(!x86_64_path_to_ret(&code, CODE_TEXT_BASE, &path));
	/* Without calls, and with them. */
	ck_assert_uint_le(code.steps, 2 * (10 + 100 + 1));
}

/* The addresses are chosen so that their hashes collide. */
TEST(colliding_addresses_are_visited_within_a_limit)
{
	/* Jumps, 8192 bytes apart. */
	static uint8_t bytes[100 * 8192 + 1];
	static const int32_t distance = 8192 - 5;
	struct code_text text = {bytes, sizeof(bytes)};
	struct x86_64_code code = {code_text_read, &text, 0, 1000};
	struct x86_64_path path;

	for (size_t i = 0; i < 100; i++) {
		bytes[i * 8192] = 0xe9;
		memcpy(bytes + i * 8192 + 1, &distance, sizeof(distance));
	}
	bytes[60 * 8192] = 0xc3;
	ck_assert(x86_64_path_to_ret(&code, CODE_TEXT_BASE, &path));
	ck_assert_uint_eq(code.steps, 61);
	bytes[60 * 8192] = 0xe9;
	bytes[100 * 8192] = 0xc3;
	ck_assert(!x86_64_path_to_ret(&code, CODE_TEXT_BASE, &path));
}

/* The last instructions of gcc 12's _Unwind_Resume, shortened. */
static const char installs_handler[] =
	"\x48\x39\xd8\x75\x63"	       /* 00: cmp; jne */
	"\xe8\0\1\0\0"		       /* 05: what installs_handler */
	"\x48\x8b\xb5\x68\xff\xff\xff" /* 0a: mov -0x98(%rbp),%rsi */
	"\xe8\x43\0\0\0"	       /* 11: _Unwind_DebugHook */
	"\x31\xd2\xf3\x48\x0f\x1e\xca" /* 16: xor; rdsspq %rdx */
	"\x48\x85\xd2\x74\x10"	       /* 1d: test; je 32 */
	"\xeb\x05"		       /* 22: jmp 29 */
	"\xf3\x48\x0f\xae\xea"	       /* 24: incsspq %rdx */
	"\x48\x81\xfa\xff\0\0\0"       /* 29: cmp $255,%rdx */
	"\x77\xf2"		       /* 30: ja 24 */
	"\x48\x89\xc1\x90\x90"	       /* 32: mov %rax,%rcx */
	"\x90"			       /* 37: */
	"\x48\x89\xcc"		       /* 38: mov %rcx,%rsp */
	"\x59\xff\xe1\xc3\xff\xe0";    /* 3b: pop; jmp *%rcx; ret; jmp *%rax */

static const struct {
	size_t from;
	bool installs_handler;
} installing[] = {
	{0, false},   {3, false},   {5, false},	  {0xa, true},	{0x11, true},  {0x16, true},
	{0x18, true}, {0x1d, true}, {0x20, true}, {0x22, true}, {0x24, true},  {0x30, true},
	{0x32, true}, {0x38, true}, {0x3b, true}, {0x3c, true}, {0x3e, false}, {0x3f, false},
};

TESTS(code_that_installs_an_exception_handler_is_recognised, array_size(installing))
{
	const uint8_t *code = (const uint8_t *)installs_handler;
	const size_t from = installing[_i].from;

	ck_assert_int_eq(x86_64_installs_handler(code + from, sizeof(installs_handler) - 1 - from),
			 installing[_i].installs_handler);
	/* Cut before its end. */
	ck_assert(from > 0x38 || !x86_64_installs_handler(code + from, 0x38 - from));
}
