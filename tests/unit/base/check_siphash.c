#include "lib/base/siphash.h"

#include "tests/unit/suite.h"

static uint8_t key[SIPHASH_KEY_SIZE];

static void set_up(void)
{
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
}

FIXTURE(set_up, NULL)

/*
 * From vectors_sip64 of the reference implementation, where the message of n bytes is 00 01 02 ...;
 * the one of 15 bytes is in the appendix of the paper.
 */
TEST(hashes_equal_the_published_vectors)
{
	static const struct {
		size_t n;
		uint64_t hash;
	} vectors[] = {
		{0, UINT64_C(0x726fdb47dd0e0e31)}, {1, UINT64_C(0x74f839c593dc67fd)},
		{2, UINT64_C(0x0d6c8009d9a94f5a)}, {3, UINT64_C(0x85676696d7fb7e2d)},
		{4, UINT64_C(0xcf2794e0277187b7)}, {5, UINT64_C(0x18765564cd99a68d)},
		{6, UINT64_C(0xcbc9466e58fee3ce)}, {7, UINT64_C(0xab0200f58b01d137)},
		{8, UINT64_C(0x93f5f5799a932462)}, {15, UINT64_C(0xa129ca6149be45e5)},
	};
	uint8_t message[15];

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++)
		ck_assert_uint_eq(siphash(key, message, vectors[i].n), vectors[i].hash);
}

TEST(every_bit_of_the_key_counts)
{
	const uint64_t before = siphash(key, "text", 4);

	for (size_t bit = 0; bit < 8 * sizeof(key); bit++) {
		key[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_uint_ne(siphash(key, "text", 4), before);
		key[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}
