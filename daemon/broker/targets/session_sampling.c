#include "daemon/broker/targets/session_sampling.h"

#include <fcntl.h>

#include "lib/base/digits.h"
#include "lib/base/small_file.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int session_sampling_key_parse(const char *text, struct session_sampling_key *ret)
{
	struct session_sampling_key key = {0};
	size_t n = 0;

	for (; *text != '\0' && *text != '\n'; text++) {
		int d = digits_value(*text);

		if (*text == '-')
			continue;
		if (d < 0 || n == 2 * sizeof(key.bytes))
			return -EINVAL;
		key.bytes[n / 2] |= (uint8_t)(n % 2 == 0 ? d << 4 : d);
		n++;
	}
	if (n != 2 * sizeof(key.bytes))
		return -EINVAL;
	*ret = key;
	return 0;
}

int session_sampling_key_read(struct session_sampling_key *ret)
{
	char text[64];
	int r = small_file_read(AT_FDCWD, BOOT_ID, text, sizeof(text));

	return r < 0 ? r : session_sampling_key_parse(text, ret);
}

bool session_sampling_decides(const struct session_sampling_key *key, int32_t pid,
			      uint64_t start_ticks, double rate)
{
	/* Fixed offsets and byte order: another version of the daemon decides the same. */
	uint8_t identity[12];
	uint64_t hash;

	for (size_t i = 0; i < 4; i++)
		identity[i] = (uint8_t)((uint32_t)pid >> (8 * i));
	for (size_t i = 0; i < 8; i++)
		identity[4 + i] = (uint8_t)(start_ticks >> (8 * i));
	hash = siphash(key->bytes, identity, sizeof(identity));
	/* A double holds 53 bits: the quotient is from 0 to below 1. */
	return (double)(hash >> 11) * 0x1p-53 < rate;
}
