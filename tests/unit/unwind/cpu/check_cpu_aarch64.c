// machine: aarch64
/* Tests of cpu.h for aarch64, with instructions as the assembler encodes them and similar ones. */
#include "lib/unwind/cpu.h"

#include "lib/base/util.h"
#include "tests/unit/suite.h"

TEST(signatures_of_pointer_authentication_are_removed)
{
	/* Signed by paciasp, in a program at 0x400000 and in a PIE. */
	ck_assert_uint_eq(cpu_return_address(UINT64_C(0x0054000000400334)), 0x400334);
	ck_assert_uint_eq(cpu_return_address(UINT64_C(0xff5caaaae8f01234)),
			  UINT64_C(0xaaaae8f01234));
	ck_assert_uint_eq(cpu_return_address(UINT64_C(0xffff87654320)), UINT64_C(0xffff87654320));
}

TEST(calls_before_an_address_are_recognised)
{
	static const struct {
		uint32_t code;
		enum cpu_call call;
		int32_t displacement;
	} cases[] = {
		{0x94000001, CPU_CALL_DIRECT, 0},	   /* bl .+4 */
		{0x97ffffff, CPU_CALL_DIRECT, -8},	   /* bl .-4 */
		{0x96000000, CPU_CALL_DIRECT, -134217732}, /* the farthest */
		{0x95ffffff, CPU_CALL_DIRECT, 134217720},
		{0xd63f0000, CPU_CALL_INDIRECT, 0}, /* blr x0 */
		{0xd63f03c0, CPU_CALL_INDIRECT, 0}, /* blr x30 */
		{0xd73f0901, CPU_CALL_INDIRECT, 0}, /* blraa x8,x1 */
		{0xd63f081f, CPU_CALL_INDIRECT, 0}, /* blraaz x0 */
		{0xd63f0c1f, CPU_CALL_INDIRECT, 0}, /* blrabz x0 */
		{0x14000001, CPU_CALL_NONE, 0},	    /* b .+4 */
		{0xd61f0000, CPU_CALL_NONE, 0},	    /* br x0 */
		{0xd65f03c0, CPU_CALL_NONE, 0},	    /* ret */
		{0xd503201f, CPU_CALL_NONE, 0},	    /* nop */
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		int32_t displacement = 0;

		ck_assert_int_eq(cpu_call_before((const uint8_t *)&cases[i].code, 4, &displacement),
				 cases[i].call);
		ck_assert_int_eq(displacement, cases[i].displacement);
		ck_assert_int_eq(cpu_call_before((const uint8_t *)&cases[i].code, 3, &displacement),
				 CPU_CALL_NONE);
	}
}

TEST(the_frame_size_is_read_from_the_prologue)
{
	static const uint32_t gcc[] = {
		0xd503233f, /* paciasp */
		0xa9be7bfd, /* stp x29,x30,[sp,#-32]! */
		0x910003fd, /* mov x29,sp */
		0xd10083ff, /* sub sp,sp,#32 */
	};
	static const uint32_t clang[] = {
		0xd10103ff, /* sub sp,sp,#64 */
		0xa9027bfd, /* stp x29,x30,[sp,#32] */
		0x910083fd, /* add x29,sp,#32 */
		0xf9000fe0, /* str x0,[sp,#24] */
	};
	uint32_t size = 1;

	ck_assert(cpu_frame_size((const uint8_t *)gcc, 16, &size));
	ck_assert_uint_eq(size, 32);
	ck_assert(cpu_frame_size((const uint8_t *)gcc, 12, &size));
	ck_assert_uint_eq(size, 0);
	ck_assert(!cpu_frame_size((const uint8_t *)gcc, 11, &size));
	ck_assert(cpu_frame_size((const uint8_t *)clang, 16, &size));
	ck_assert_uint_eq(size, 32);
}

TEST(changes_of_sp_by_a_register_make_a_frame_vary)
{
	static const struct {
		uint32_t code[2];
		bool varies;
	} cases[] = {
		{{0xd503201f, 0xcb2063ff}, true},  /* nop; sub sp,sp,x0 */
		{{0x9100013f, 0xd503201f}, true},  /* mov sp,x9 */
		{{0x927bed3f, 0xd503201f}, true},  /* and sp,x9,#-32 */
		{{0xd10083ff, 0x910003bf}, false}, /* sub sp,sp,#32; mov sp,x29 */
		{{0x910003fd, 0xcb000021}, false}, /* mov x29,sp; sub x1,x1,x0 */
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		const uint8_t *code = (const uint8_t *)cases[i].code;

		ck_assert(cpu_frame_varies(code, 8) == cases[i].varies);
		ck_assert(!cpu_frame_varies(code, 3));
	}
}

TEST(jumps_to_a_distance_are_found)
{
	static const uint32_t code[] = {
		0xd503245f, /* bti c */
		0x14000004, /* b .+16 */
		0x54ffff80, /* b.eq .-16 */
		0x97fffffc, /* bl .-16 */
	};
	const uint8_t *bytes = (const uint8_t *)code;

	ck_assert(cpu_jumps_to(bytes, 16, 20));
	ck_assert(cpu_jumps_to(bytes, 16, -8));
	ck_assert(!cpu_jumps_to(bytes, 16, -4));
	ck_assert(!cpu_jumps_to(bytes, 8, -8));
	ck_assert(!cpu_jumps_to(bytes, 7, 20));
}

TEST(stubs_of_a_plt_are_recognised)
{
	static const uint32_t code[] = {
		0xd503245f, /* bti c */
		0xb0000090, /* adrp x16,PAGE */
		0xf947f611, /* ldr x17,[x16,#4072] */
		0x913fa210, /* add x16,x16,#4072 */
		0xd61f0220, /* br x17 */
	};
	const uint8_t *bytes = (const uint8_t *)code;

	ck_assert(cpu_is_stub(bytes, 12));
	ck_assert(!cpu_is_stub(bytes, 11));
	ck_assert(cpu_is_stub(bytes + 4, 8));
	ck_assert(!cpu_is_stub(bytes + 8, 12));
	ck_assert(!cpu_is_stub(bytes, 0));
}

TEST(the_slot_and_the_size_of_a_stub_are_computed)
{
	static const struct {
		uint32_t code[6];
		uint64_t vaddr, slot;
		uint32_t size;
	} cases[] = {
		/* adrp x16,+17 pages; ldr x17,[x16,#4072]; add; br x17 */
		{{0xb0000090, 0xf947f611, 0x913fa210, 0xd61f0220}, 0x10630, 0x21fe8, 16},
		/* the same without add */
		{{0xb0000090, 0xf947f611, 0xd61f0220, 0xd503201f}, 0x10630, 0x21fe8, 16},
		/* with autia1716 */
		{{0xb0000090, 0xf947f611, 0x913fa210, 0xd503219f, 0xd61f0220},
		 0x10630,
		 0x21fe8,
		 24},
		/* bti c, in the last word of a page */
		{{0xd503245f, 0xb0000090, 0xf947f611, 0x913fa210, 0xd61f0220, 0xd503201f},
		 0x10ffc,
		 0x22fe8,
		 24},
		/* adrp x16,-1 page; ldr x17,[x16] */
		{{0xf0fffff0, 0xf9400211, 0x91000210, 0xd61f0220}, 0x10630, 0xf000, 16},
	};
	uint64_t slot;

	for (size_t i = 0; i < array_size(cases); i++) {
		const uint8_t *code = (const uint8_t *)cases[i].code;

		ck_assert_uint_eq(cpu_plt_stub(code, 24, cases[i].vaddr, &slot), cases[i].size);
		ck_assert_uint_eq(slot, cases[i].slot);
	}
}

TEST(the_trampoline_of_sigreturn_is_recognised)
{
	static const uint32_t code[] = {0xd2801168, 0xd4000001};
	const uint8_t *bytes = (const uint8_t *)code;

	ck_assert(cpu_is_sigreturn(bytes, 8));
	ck_assert(!cpu_is_sigreturn(bytes, 7));
	ck_assert(!cpu_is_sigreturn(bytes + 4, 4));
	/* uc_mcontext is 176 bytes into ucontext; asm/ucontext.h */
	ck_assert_uint_eq(cpu_sigframe_offset(0), 128 + 176 + 8);
	ck_assert_uint_eq(cpu_sigframe_offset(CPU_PC), 128 + 176 + 8 + 32 * 8);
}
