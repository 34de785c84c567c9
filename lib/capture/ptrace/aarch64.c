#include "lib/capture/ptrace/aarch64.h"

#include <string.h>

/* Arm Architecture Reference Manual, C6.2: the instructions, without their registers. */
#define MOV_REGISTER	  0x2a0003e0u /* orr rd, zr, rm; of 32 and 64 bits */
#define MOV_REGISTER_MASK 0x7fe0ffe0u
#define MOV_WIDE	  0x52800000u /* movz */
#define MOV_INVERTED	  0x12800000u /* movn */
#define MOV_CONSTANT_MASK 0x7f800000u
#define SXTW		  0x93407c00u
#define SXTW_MASK	  0xfffffc00u

#define OF_64_BITS 0x80000000u
#define ZERO	   31u /* as a source: 0 */

/* What one instruction does. */
struct copy {
	unsigned int to;
	bool is_whole; /* a copy of 64 bits; else of 32 bits, or a constant */
	unsigned int from;
};

/* Returns false for any instruction but a copy of a register or a constant. */
static bool decode(uint32_t word, struct copy *ret)
{
	*ret = (struct copy){.to = word & 31, .from = word >> 16 & 31};
	if ((word & MOV_REGISTER_MASK) == MOV_REGISTER) {
		ret->is_whole = (word & OF_64_BITS) != 0;
		return true;
	}
	return (word & SXTW_MASK) == SXTW || (word & MOV_CONSTANT_MASK) == MOV_WIDE ||
	       (word & MOV_CONSTANT_MASK) == MOV_INVERTED;
}

bool aarch64_first_argument(const uint8_t *code, size_t n, unsigned int *ret_register)
{
	uint32_t changed = 1; /* bit n: xn, which is not what it was before the call */
	struct copy copy;
	uint32_t word;

	while (n >= sizeof(word)) {
		n -= sizeof(word);
		memcpy(&word, code + n, sizeof(word));
		if (!decode(word, &copy))
			return false;
		if (copy.to == 0) {
			if (!copy.is_whole || copy.from == ZERO ||
			    (changed & UINT32_C(1) << copy.from) != 0)
				return false;
			*ret_register = copy.from;
			return true;
		}
		changed |= UINT32_C(1) << copy.to;
	}
	return false;
}
