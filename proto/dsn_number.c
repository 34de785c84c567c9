#include <string.h>

#include "proto/dsn.h"

/* FNV-1a. */
uint64_t dsn_number(const struct dsn *dsn)
{
	const char *const parts[] = {dsn->host, dsn->path, dsn->project, dsn->public_key};
	/* A port has 16 bits. */
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ dsn->port ^ (dsn->https ? 0 : 1u << 16);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		/* Its end is part of each, so that no two are taken for one. */
		for (size_t n = 0; n <= strlen(parts[i]); n++)
			hash = (hash ^ (uint8_t)parts[i][n]) * UINT64_C(0x100000001b3);
	return hash;
}
