#include "daemon/listen_at.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/digits.h"

static int parse_path(const char *path, struct listen_at *ret)
{
	const size_t n = strlen(path);

	if (n >= sizeof(ret->path.sun_path))
		return -ENAMETOOLONG;
	ret->path.sun_family = AF_UNIX;
	memcpy(ret->path.sun_path, path, n + 1);
	ret->size = sizeof(ret->path);
	return 0;
}

/* Loopback only: nobody is asked who he is. */
static int parse_port(const char *where, struct listen_at *ret)
{
	static const char v4[] = "127.0.0.1:", v6[] = "[::1]:";
	const bool is_v6 = strncmp(where, v6, strlen(v6)) == 0;
	uint64_t port;

	if (!is_v6 && strncmp(where, v4, strlen(v4)) != 0)
		return -EINVAL;
	if (!digits_number(where + strlen(is_v6 ? v6 : v4), 1, UINT16_MAX,
			   &port))
		return -EINVAL;
	if (is_v6) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_addr = in6addr_loopback;
		ret->v6.sin6_port = htons((uint16_t)port);
		ret->size = sizeof(ret->v6);
	} else {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		ret->v4.sin_port = htons((uint16_t)port);
		ret->size = sizeof(ret->v4);
	}
	return 0;
}

int listen_at_parse(const char *where, struct listen_at *ret)
{
	*ret = (struct listen_at){.size = 0};
	return where[0] == '/' ? parse_path(where, ret)
			       : parse_port(where, ret);
}
