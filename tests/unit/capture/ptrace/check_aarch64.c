#include "lib/capture/ptrace/aarch64.h"

#include <string.h>

#include "tests/unit/suite.h"

#define MOV_X0_X20  0xaa1403e0u
#define MOV_X0_X3   0xaa0303e0u
#define MOV_X0_XZR  0xaa1f03e0u
#define MOV_W0_W20  0x2a1403e0u
#define MOV_X0_8    0xd2800100u
#define MOV_X3_X19  0xaa1303e3u
#define MOV_W3_W19  0x2a1303e3u
#define MOV_X20_X19 0xaa1303f4u
#define MOV_X4_0    0xd2800004u
#define MOVN_W1_0   0x12800001u
#define MOV_X8_207  0xd28019e8u
#define SXTW_X0_W0  0x93407c00u
#define SXTW_X2_W2  0x93407c42u
#define LDR_X0_SP   0xf94003e0u
#define NOP	    0xd503201fu
#define CBZ_W4	    0x340001c4u

static const struct {
	const char *name;
	uint32_t words[8]; /* the first ones are 0: no instruction */
	bool found;
	unsigned int reg;
} codes[] = {
	/* glibc 2.36: recv(2), and the two calls of read(2). */
	{"recv",
	 {0, 0, CBZ_W4, MOV_X0_X20, MOV_X3_X19, MOV_X4_0, MOV_X4_0 + 1, MOV_X8_207},
	 true,
	 20},
	{"read", {0, 0, 0, 0, 0, CBZ_W4, MOV_X0_X20, MOV_X8_207}, true, 20},
	{"right before", {0, 0, 0, 0, 0, 0, 0, MOV_X0_X20}, true, 20},
	{"first word",
	 {MOV_X0_X20, MOV_X4_0, MOV_X4_0, MOV_X4_0, MOV_X4_0, MOVN_W1_0, MOV_W3_W19, SXTW_X2_W2},
	 true,
	 20},
	/* The source is not what it was: semtimedop(2), and copies that are overwritten. */
	{"of itself", {0, 0, 0, 0, 0, 0, SXTW_X0_W0, MOV_X8_207}, false, 0},
	{"source is overwritten by a copy",
	 {0, 0, 0, 0, 0, MOV_X0_X3, MOV_X3_X19, MOV_X8_207},
	 false,
	 0},
	{"source is overwritten by half",
	 {0, 0, 0, 0, 0, MOV_X0_X3, MOV_W3_W19, MOV_X8_207},
	 false,
	 0},
	{"source is overwritten", {0, 0, 0, 0, 0, MOV_X0_X20, MOV_X20_X19, MOV_X8_207}, false, 0},
	/* The last one that sets x0 counts. */
	{"twice", {0, 0, 0, 0, 0, MOV_X0_X20, MOV_X0_X3, MOV_X8_207}, true, 3},
	{"constant", {0, 0, 0, 0, 0, MOV_X0_X20, MOV_X0_8, MOV_X8_207}, false, 0},
	{"zero", {0, 0, 0, 0, 0, MOV_X0_X20, MOV_X0_XZR, MOV_X8_207}, false, 0},
	/* The upper half of x20 need not be that of the argument. */
	{"half", {0, 0, 0, 0, 0, 0, MOV_W0_W20, MOV_X8_207}, false, 0},
	{"from memory", {0, 0, 0, 0, 0, MOV_X0_X20, LDR_X0_SP, MOV_X8_207}, false, 0},
	{"another instruction", {0, 0, 0, 0, 0, MOV_X0_X20, NOP, MOV_X8_207}, false, 0},
	{"no copy",
	 {MOV_X8_207, MOV_X4_0, MOV_X4_0, MOV_X4_0, MOV_X4_0, MOV_X4_0, MOV_X4_0, MOV_X8_207},
	 false,
	 0},
};

FIXTURE(NULL, NULL)

TESTS(finds_the_register_of_the_first_argument, array_size(codes))
{
	unsigned int reg = 99;
	uint8_t bytes[sizeof(codes[0].words)];

	memcpy(bytes, codes[_i].words, sizeof(bytes));
	ck_assert_msg(aarch64_first_argument(bytes, sizeof(bytes), &reg) == codes[_i].found, "%s",
		      codes[_i].name);
	ck_assert_msg(reg == (codes[_i].found ? codes[_i].reg : 99), "%s: x%u", codes[_i].name,
		      reg);
}

/* A page may begin close before the call. */
TEST(reads_no_byte_in_front_of_the_code)
{
	const uint32_t words[] = {MOV_X0_X20, MOV_X8_207};
	uint8_t bytes[sizeof(words)];
	unsigned int reg;

	memcpy(bytes, words, sizeof(bytes));
	ck_assert(aarch64_first_argument(bytes, 8, &reg));
	ck_assert(!aarch64_first_argument(bytes + 4, 4, &reg));
	ck_assert(!aarch64_first_argument(bytes + 1, 7, &reg));
	ck_assert(!aarch64_first_argument(bytes + 8, 0, &reg));
}
