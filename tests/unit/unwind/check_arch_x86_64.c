#include "lib/unwind/arch_x86_64.h"

#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static const struct {
	const char *bytes;
	size_t n;
	enum x86_64_call call;
	int32_t displacement;
} calls[] = {
	{"\xe8\x10\0\0\0", 5, X86_64_CALL_DIRECT, 16},
	{"\x90\xe8\xf0\xff\xff\xff", 6, X86_64_CALL_DIRECT, -16},
	{"\xff\xd0", 2, X86_64_CALL_INDIRECT, 0},	  /* *%rax */
	{"\x41\xff\xd4", 3, X86_64_CALL_INDIRECT, 0},	  /* *%r12 */
	{"\xff\x10", 2, X86_64_CALL_INDIRECT, 0},	  /* *(%rax) */
	{"\xff\x50\x08", 3, X86_64_CALL_INDIRECT, 0},	  /* *8(%rax) */
	{"\xff\x54\x24\x08", 4, X86_64_CALL_INDIRECT, 0}, /* *8(%rsp) */
	{"\xff\x15\1\2\3\4", 6, X86_64_CALL_INDIRECT, 0}, /* *n(%rip) */
	{"\xff\x90\1\2\3\4", 6, X86_64_CALL_INDIRECT, 0},
	{"\xff\x14\xc5\1\2\3\4", 7, X86_64_CALL_INDIRECT, 0},
	{"\xff\x94\xc3\1\2\3\4", 7, X86_64_CALL_INDIRECT, 0},
	{"\xff\xe0", 2, X86_64_CALL_NONE, 0},	      /* jmp *%rax */
	{"\xff\x50\x08\x90", 4, X86_64_CALL_NONE, 0}, /* call, nop */
	{"\xe9\x10\0\0\0", 5, X86_64_CALL_NONE, 0},
	{"\x90\x90\x90\x90\x90\x90\x90\x90", 8, X86_64_CALL_NONE, 0},
	{"\xff", 1, X86_64_CALL_NONE, 0},
	{"", 0, X86_64_CALL_NONE, 0},
};

START_TEST(test_call)
{
	int32_t displacement = 0;

	ck_assert_int_eq(x86_64_call_before((const uint8_t *)calls[_i].bytes,
					    calls[_i].n, &displacement),
			 calls[_i].call);
	ck_assert_int_eq(displacement, calls[_i].displacement);
}
END_TEST

static const struct {
	const char *bytes;
	size_t n;
	bool ok;
	uint32_t size;
} prologues[] = {
	{"\x55\x48\x89\xe5\x90", 5, true, 0},
	{"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x83\xec\x20", 12, true, 32},
	{"\x55\x48\x89\xe5\x41\x57\x41\x54\x53\x48\x81\xec\0\1\0\0", 16, true,
	 24 + 256},
	{"\x55\x48\x89\xe5\x53", 5, true, 8},
	{"\x55\x48\x89\xe5\x41", 5, true, 0},
	{"\x55\x48\x89\xe5\x48\x81\xec\0\1\0", 10, true, 0}, /* cut off */
	{"\x53\x48\x89\xe5", 4, false, 0},
	{"\x55\x90", 2, false, 0},
	{"\x55\x48\x89\xe5\x48\x81\xec\xff\xff\xff\xff", 11, false, 0},
	{"", 0, false, 0},
};

START_TEST(test_frame_size)
{
	uint32_t size = 0;

	ck_assert_int_eq(x86_64_frame_size((const uint8_t *)prologues[_i].bytes,
					   prologues[_i].n, &size),
			 prologues[_i].ok);
	ck_assert_uint_eq(size, prologues[_i].size);
}
END_TEST

START_TEST(test_others)
{
	const uint8_t *sigreturn =
		(const uint8_t *)"\x48\xc7\xc0\x0f\0\0\0\x0f\x05";
	const uint8_t *jump = (const uint8_t *)"\x90\xe9\x0a\0\0\0\x0f\x84"
					       "\x14\0\0\0";

	ck_assert(x86_64_is_sigreturn(sigreturn, 9));
	ck_assert(!x86_64_is_sigreturn(sigreturn, 8));
	ck_assert(!x86_64_is_sigreturn(jump, 9));
	ck_assert(x86_64_jumps_to(jump, 12, 1 + 5 + 10));
	ck_assert(x86_64_jumps_to(jump, 12, 12 + 20));
	ck_assert(!x86_64_jumps_to(jump, 11, 12 + 20));
	ck_assert(!x86_64_jumps_to(jump, 12, 12));
	ck_assert(x86_64_is_stub((const uint8_t *)"\xff\x25\0\0\0\0", 6));
	ck_assert(x86_64_is_stub(
		(const uint8_t *)"\xf3\x0f\x1e\xfa\xf2\xff\x25\0", 8));
	ck_assert(!x86_64_is_stub((const uint8_t *)"\xff\xe0\0\0", 4));
	/* asm/sigcontext.h: rip follows rsp; both stand behind rcx. */
	ck_assert_uint_eq(x86_64_sigframe_offset(X86_64_RSP), 160);
	ck_assert_uint_eq(x86_64_sigframe_offset(X86_64_RIP), 168);
	ck_assert_uint_eq(x86_64_sigframe_offset(X86_64_R8), 40);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("unwind/arch_x86_64");
	TCase *tc = tcase_create("code");

	tcase_add_loop_test(tc, test_call, 0, (int)array_size(calls));
	tcase_add_loop_test(tc, test_frame_size, 0, (int)array_size(prologues));
	tcase_add_test(tc, test_others);
	suite_add_tcase(s, tc);
	return s;
}
