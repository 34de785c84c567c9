// machine: x86_64
#include "lib/unwind/cpu.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static const struct {
	const char *bytes;
	size_t n;
	enum cpu_call call;
	int32_t displacement;
} calls[] = {
	{"\xe8\x10\0\0\0", 5, CPU_CALL_DIRECT, 16},
	{"\x90\xe8\xf0\xff\xff\xff", 6, CPU_CALL_DIRECT, -16},
	{"\xff\xd0", 2, CPU_CALL_INDIRECT, 0},	       /* *%rax */
	{"\x41\xff\xd4", 3, CPU_CALL_INDIRECT, 0},     /* *%r12 */
	{"\xff\x10", 2, CPU_CALL_INDIRECT, 0},	       /* *(%rax) */
	{"\xff\x50\x08", 3, CPU_CALL_INDIRECT, 0},     /* *8(%rax) */
	{"\xff\x54\x24\x08", 4, CPU_CALL_INDIRECT, 0}, /* *8(%rsp) */
	{"\xff\x15\1\2\3\4", 6, CPU_CALL_INDIRECT, 0}, /* *n(%rip) */
	{"\xff\x90\1\2\3\4", 6, CPU_CALL_INDIRECT, 0},
	{"\xff\x14\xc5\1\2\3\4", 7, CPU_CALL_INDIRECT, 0},
	{"\xff\x94\xc3\1\2\3\4", 7, CPU_CALL_INDIRECT, 0},
	{"\xff\xe0", 2, CPU_CALL_NONE, 0},	   /* jmp *%rax */
	{"\xff\x50\x08\x90", 4, CPU_CALL_NONE, 0}, /* call, nop */
	{"\xe9\x10\0\0\0", 5, CPU_CALL_NONE, 0},
	{"\x90\x90\x90\x90\x90\x90\x90\x90", 8, CPU_CALL_NONE, 0},
	{"\xff", 1, CPU_CALL_NONE, 0},
	{"", 0, CPU_CALL_NONE, 0},
};

TESTS(calls_before_an_address_are_recognised, array_size(calls))
{
	int32_t displacement = 0;

	ck_assert_int_eq(
		cpu_call_before((const uint8_t *)calls[_i].bytes, calls[_i].n, &displacement),
		calls[_i].call);
	ck_assert_int_eq(displacement, calls[_i].displacement);
}

static const struct {
	const char *bytes;
	size_t n;
	bool ok;
	uint32_t size;
} prologues[] = {
	{"\x55\x48\x89\xe5\x90", 5, true, 0},
	{"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x48\x83\xec\x20", 12, true, 32},
	{"\x55\x48\x89\xe5\x41\x57\x41\x54\x53\x48\x81\xec\0\1\0\0", 16, true, 24 + 256},
	{"\x55\x48\x89\xe5\x53", 5, true, 8},
	{"\x55\x48\x89\xe5\x41", 5, true, 0},
	{"\x55\x48\x89\xe5\x48\x81\xec\0\1\0", 10, true, 0}, /* cut off */
	{"\x53\x48\x89\xe5", 4, false, 0},
	{"\x55\x90", 2, false, 0},
	/* sub $-1: unknown */
	{"\x55\x48\x89\xe5\x48\x81\xec\xff\xff\xff\xff", 11, true, 0},
	/* push $7: an argument */
	{"\x55\x48\x89\xe5\x53\x6a\x07", 7, true, 8},
	{"", 0, false, 0},
};

TESTS(the_frame_size_is_read_from_the_prologue, array_size(prologues))
{
	uint32_t size = 0;

	ck_assert_int_eq(
		cpu_frame_size((const uint8_t *)prologues[_i].bytes, prologues[_i].n, &size),
		prologues[_i].ok);
	ck_assert_uint_eq(size, prologues[_i].size);
}

static const struct {
	const char *bytes;
	size_t n;
	bool varies;
} frames[] = {
	{"\x48\x29\xc4", 3, true},		 /* sub %rax,%rsp */
	{"\x90\x4c\x29\xc4", 4, true},		 /* sub %r8,%rsp */
	{"\x48\x2b\x65\xf0", 4, true},		 /* sub -16(%rbp),%rsp */
	{"\x48\x89\xc4", 3, true},		 /* mov %rax,%rsp */
	{"\x49\x8b\xe5", 3, true},		 /* mov %r13,%rsp */
	{"\x4c\x89\xec", 3, true},		 /* the same */
	{"\x48\x83\xe4\xe0", 4, true},		 /* and $-32,%rsp */
	{"\x48\x81\xe4\0\xff\xff\xff", 7, true}, /* and $-256,%rsp */
	{"\x48\x29", 2, false},			 /* cut off */
	{"\x48\x83\xec\x20", 4, false},		 /* sub $32,%rsp */
	{"\x48\x89\xec", 3, false},		 /* mov %rbp,%rsp */
	{"\x48\x8b\xe5", 3, false},		 /* the same */
	{"\x48\x89\xe0", 3, false},		 /* mov %rsp,%rax */
	{"\x49\x29\xc4", 3, false},		 /* sub %rax,%r12 */
	{"\x49\x83\xe4\xe0", 4, false},		 /* and $-32,%r12 */
	{"\x4c\x8b\x65\xf0", 4, false},		 /* mov -16(%rbp),%r12 */
	{"\x29\xc4", 2, false},			 /* of 32 bits */
};

TESTS(changes_of_rsp_by_a_register_make_a_frame_vary, array_size(frames))
{
	ck_assert(cpu_frame_varies((const uint8_t *)frames[_i].bytes, frames[_i].n) ==
		  frames[_i].varies);
}

TEST(sigreturn_and_jumps_are_recognised)
{
	const uint8_t *sigreturn = (const uint8_t *)"\x48\xc7\xc0\x0f\0\0\0\x0f\x05";
	const uint8_t *jump = (const uint8_t *)"\x90\xe9\x0a\0\0\0\x0f\x84"
					       "\x14\0\0\0";

	ck_assert(cpu_is_sigreturn(sigreturn, 9));
	ck_assert(!cpu_is_sigreturn(sigreturn, 8));
	ck_assert(!cpu_is_sigreturn(jump, 9));
	ck_assert(cpu_jumps_to(jump, 12, 1 + 5 + 10));
	ck_assert(cpu_jumps_to(jump, 12, 12 + 20));
	ck_assert(!cpu_jumps_to(jump, 11, 12 + 20));
	ck_assert(!cpu_jumps_to(jump, 12, 12));
	/* asm/sigcontext.h: rip is behind rsp; both are behind rcx. */
	ck_assert_uint_eq(cpu_sigframe_offset(X86_64_RSP), 160);
	ck_assert_uint_eq(cpu_sigframe_offset(X86_64_RIP), 168);
	ck_assert_uint_eq(cpu_sigframe_offset(8), 40);
}

static const struct {
	const char *bytes;
	size_t n;
	bool expected;
} lasts[] = {
	/* xor %edi,%edi; call; hlt */
	{"\x31\xff\xe8\1\2\3\4\xf4", 8, true},
	{"\x31\xff\xe8\1\2\3\4\xf4", 7, false},
	/* endbr64; xor %rdi,%rdi; call; hlt */
	{"\xf3\x0f\x1e\xfa\x48\x31\xff\xe8\1\2\3\4\xf4", 13, true},
	/* call *n(%rip); ud2 */
	{"\xff\x15\1\2\3\4\x0f\x0b", 8, true},
	{"\xff\x15\1\2\3\4\x0f", 7, false},
	/* call; ret */
	{"\xe8\1\2\3\4\xc3\xf4", 7, false},
	/* push %rdi; call; hlt */
	{"\x57\xe8\1\2\3\4\xf4", 7, false},
	{"\xf4", 1, false},
	{"\x31\xff", 2, false},
};

TESTS(code_that_never_returns_ends_with_a_call_and_hlt_or_ud2, array_size(lasts))
{
	const uint8_t *code = (const uint8_t *)lasts[_i].bytes;

	ck_assert(cpu_never_returns(code, lasts[_i].n) == lasts[_i].expected);
}

/* The code behind the system call in glibc's clone3 and clone, and musl's. */
static const char clone3[] = "\x48\x85\xc0\x7c\x18\x74\x01\xc3\x31\xed\x48\x83"
			     "\xe4\xf0\x4c\x89\xc7\xff\xd2\x48\x89\xc7\xb8\x3c\0"
			     "\0\0\x0f\x05";
static const char clone[] = "\x48\x85\xc0\x7c\x13\x74\x01\xc3\x31\xed\x58\x5f"
			    "\xff\xd0\x48\x89\xc7\xb8\x3c\0\0\0\x0f\x05";
static const char musl[] = "\x85\xc0\x75\x11\x31\xed\x5f\x41\xff\xd1\x89\xc7\x31"
			   "\xc0\xb0\x3c\x0f\x05\xf4\xc3";

static const struct {
	const char *bytes;
	size_t n;
	size_t from;
	bool expected;
} thread_starts[] = {
	{clone3, sizeof(clone3) - 1, 0, true},
	{clone3, sizeof(clone3) - 1, 3, true},
	{clone3, sizeof(clone3) - 1, 5, true},
	{clone3, sizeof(clone3) - 1, 7, false}, /* at ret */
	{clone3, sizeof(clone3) - 1, 8, true},
	{clone3, sizeof(clone3) - 1, 10, true}, /* behind xor */
	{clone3, sizeof(clone3) - 1, 17, true}, /* at the call */
	{clone3, sizeof(clone3) - 2, 0, false},
	{clone, sizeof(clone) - 1, 0, true},
	{clone, sizeof(clone) - 1, 11, true},
	{clone, sizeof(clone) - 1, 14, false}, /* behind the call */
	{musl, sizeof(musl) - 1, 0, true},
	{musl, sizeof(musl) - 1, 7, true},
	{musl, sizeof(musl) - 1, sizeof(musl) - 2, false},
	/* test; jne: the path of another system call; call *%rdx; ret */
	{"\x31\xed\x85\xc0\x75\x02\x5b\xc3\xff\xd2\xb8\x3c\0\0\0\x0f\x05", 17, 0, false},
	{"\x31\xed\xff\xd2\xc3\xb8\x3c\0\0\0\x0f\x05", 12, 0, false},
	/* a direct call; another system call; a jump back, or too far */
	{"\x31\xed\xe8\0\0\0\0\xb8\x3c\0\0\0\x0f\x05", 14, 0, false},
	{"\x31\xed\xff\xd2\xb8\x3d\0\0\0\x0f\x05", 11, 0, false},
	{"\xeb\xfe", 2, 0, false},
	{"\x74\x7f\xff\xd2", 4, 0, false},
	/* test; jne; sub $8,%rsp; call *%rdi; movzbl; mov; syscall: a fork */
	{"\x48\x85\xc0\x75\x13\x48\x83\xec\x08\xff\xd7\x0f\xb6\xf8\xb8\x3c\0\0"
	 "\0\x0f\x05",
	 21, 0, false},
};

TESTS(the_path_of_a_new_thread_clears_rbp_and_exits_behind_its_call, array_size(thread_starts))
{
	const uint8_t *code = (const uint8_t *)thread_starts[_i].bytes;
	const size_t before = min_size(thread_starts[_i].from, CPU_THREAD_START_BEFORE);

	ck_assert(cpu_is_thread_start(code + thread_starts[_i].from - before, before,
				      code + thread_starts[_i].from,
				      thread_starts[_i].n - thread_starts[_i].from) ==
		  thread_starts[_i].expected);
}
