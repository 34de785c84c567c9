#include "lib/base/digits.h"

int digits_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void digits_of_bytes(const uint8_t *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[bytes[i] >> 4];
		*ret++ = digits[bytes[i] & 15];
	}
	*ret = '\0';
}

bool digits_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return false;
	}
	if (n < min || n > max)
		return false;
	*ret = n;
	return true;
}

bool digits_pid(const char *text, int32_t *ret)
{
	uint64_t pid;

	if (!digits_number(text, 1, INT32_MAX, &pid))
		return false;
	*ret = (int32_t)pid;
	return true;
}
