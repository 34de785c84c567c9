#include "daemon/listen_at.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/suite.h"

#define LONG50 "/234567890123456789012345678901234567890123456789"

TEST(places)
{
	struct listen_at at;

	ck_assert_int_eq(listen_at_parse("/run/x", &at), 0);
	ck_assert(at.any.sa_family == AF_UNIX && at.size == sizeof(at.path));
	ck_assert_str_eq(at.path.sun_path, "/run/x");
	ck_assert_int_eq(listen_at_parse("127.0.0.1:9000", &at), 0);
	ck_assert(at.any.sa_family == AF_INET && at.size == sizeof(at.v4));
	ck_assert(at.v4.sin_port == htons(9000) &&
		  at.v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	ck_assert_int_eq(listen_at_parse("[::1]:65535", &at), 0);
	ck_assert(at.any.sa_family == AF_INET6 && at.size == sizeof(at.v6));
	ck_assert(at.v6.sin6_port == htons(65535) &&
		  IN6_IS_ADDR_LOOPBACK(&at.v6.sin6_addr));
}

static const char *const wrong[] = {
	"",
	"socket",
	"127.0.0.1",
	"127.0.0.1:",
	"127.0.0.1:0",
	"127.0.0.1: 80",
	"127.0.0.1:+80",
	"127.0.0.1:65536",
	"127.0.0.1:80x",
	"0.0.0.0:80",
	"[::]:80",
	"[::1]80",
	"localhost:80",
	"::1:80",
	":80",
	"80",
	"127.0.0.1:80:80",
};

TESTS(no_places, (array_size(wrong)))
{
	struct listen_at at;

	ck_assert_int_eq(listen_at_parse(wrong[_i], &at), -EINVAL);
}

TEST(long_paths)
{
	static const char most[] = LONG50 LONG50 "/23456789";
	struct listen_at at;

	ck_assert_uint_eq(strlen(most), 107);
	ck_assert_int_eq(listen_at_parse(most, &at), 0);
	ck_assert_int_eq(listen_at_parse(LONG50 LONG50 "/2345678901", &at),
			 -ENAMETOOLONG);
}
