#include "lib/base/siphash.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t read_le(const uint8_t *bytes, size_t n)
{
	uint64_t word = 0;

	for (size_t i = 0; i < n; i++)
		word |= (uint64_t)bytes[i] << (8 * i);
	return word;
}

static uint64_t rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(struct state *s, int n)
{
	while (n-- > 0) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate(s->v1, 13) ^ s->v0;
		s->v3 = rotate(s->v3, 16) ^ s->v2;
		s->v0 = rotate(s->v0, 32) + s->v3;
		s->v2 += s->v1;
		s->v1 = rotate(s->v1, 17) ^ s->v2;
		s->v3 = rotate(s->v3, 21) ^ s->v0;
		s->v2 = rotate(s->v2, 32);
	}
}

static void compress(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	rounds(s, 2);
	s->v0 ^= word;
}

uint64_t siphash(const uint8_t key[SIPHASH_KEY_SIZE], const void *data, size_t n)
{
	const uint64_t k0 = read_le(key, 8), k1 = read_le(key + 8, 8);
	/* The constants are the paper's: "somepseudorandomlygeneratedbytes". */
	struct state s = {
		.v0 = k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = k1 ^ UINT64_C(0x7465646279746573),
	};
	const uint8_t *bytes = data;
	size_t at = 0;

	for (; n - at >= 8; at += 8)
		compress(&s, read_le(bytes + at, 8));
	compress(&s, read_le(bytes + at, n - at) | (uint64_t)n << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
