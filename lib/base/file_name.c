#include "lib/base/file_name.h"

#include <string.h>

bool file_name_is_plain(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	if (n == 0 || n == size || text[0] == '.')
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == '/')
			return false;
	return true;
}
