#include "daemon/config/config_value.h"

#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static const char *const good[] = {
	"proxy",
	"proxy:3128",
	"proxy.example.com",
	"http://proxy:3128/",
	"HTTPS://proxy",
	"http://user:w@rd:x@proxy:3128",
	"user:word@proxy:3128",
	"socks5h://127.0.0.1:9050",
	"http://[::1]:3128",
	"[fe80::1%eth0]",
	"http://b\xc3\xbc"
	"cher.example:80",
	"http://a_b:65535/path",
	"http://proxy:",
	"http://proxy:/",
	"http://[::1]:/",
};

TESTS(valid_proxy_urls_are_accepted, array_size(good))
{
	ck_assert_msg(config_proxy_problem(good[_i]) == NULL, "%s: %s", good[_i],
		      config_proxy_problem(good[_i]));
}

static const struct {
	const char *url, *problem;
} wrong[] = {
	{"", "host"},
	{"http://", "host"},
	{"http:///path", "host"},
	{"http://:3128", "host"},
	{"http://user:secret@", "host"},
	{"http://[::1:31a8", "port"},
	{"socks6://secret@:1", "host"},
	{"http://proxy:0", "port"},
	{"http://proxy:65536", "port"},
	{"http://proxy:99999999999999999999", "port"},
	{"http://proxy:655350", "port"},
	{"http://proxy:003128x", "port"},
	{"http://secret@proxy:31a8", "port"},
	{"http://[::1]:x", "port"},
};

TESTS(wrong_proxy_urls_are_refused, array_size(wrong))
{
	const char *problem = config_proxy_problem(wrong[_i].url);

	ck_assert_msg(problem != NULL, "%s", wrong[_i].url);
	ck_assert_msg(strstr(problem, wrong[_i].problem) != NULL, "%s: %s", wrong[_i].url, problem);
	LACKS(problem, "secret");
}

TEST(dsns_proxies_and_urls_with_a_user_may_be_secret)
{
	const struct config_key *dsn = config_key_find(SECTION_SENTRY, "dsn");
	const struct config_key *proxy = config_key_find(SECTION_SENTRY, "http_proxy");
	const struct config_key *dsn_file = config_key_find(SECTION_SENTRY, "dsn_file");

	ck_assert(config_value_may_be_secret(dsn, "x"));
	ck_assert(config_value_may_be_secret(proxy, "secret@"));
	ck_assert(config_value_may_be_secret(dsn_file, "https://secret@host/1"));
	ck_assert(config_value_may_be_secret(NULL, "https://secret@host/1"));
	ck_assert(!config_value_may_be_secret(dsn_file, "relative/path"));
	ck_assert(!config_value_may_be_secret(NULL, "getty@tty1.service"));
	ck_assert(!config_value_may_be_secret(NULL, "http://localhost:8969/stream"));
}
