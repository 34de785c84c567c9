#include "proto/dsn.h"

#include <stdio.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

static const struct {
	const char *text;
	const char *endpoint;
	const char *auth; /* the end of the header, behind the client */
} good[] = {
	{"https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/42",
	 "https://o1.ingest.sentry.io/api/42/envelope/",
	 "sentry_key=0123456789abcdef0123456789abcdef"},
	{"http://key@localhost:8000/1", "http://localhost:8000/api/1/envelope/", "sentry_key=key"},
	{"https://key:secret@host/1", "https://host/api/1/envelope/",
	 "sentry_key=key, sentry_secret=secret"},
	/* An empty secret counts as no secret. */
	{"https://key:@host/1", "https://host/api/1/envelope/", "sentry_key=key"},
	{"https://key@host/a/pre-fix/7", "https://host/a/pre-fix/api/7/envelope/",
	 "sentry_key=key"},
	{"https://key@[::1]/1", "https://[::1]/api/1/envelope/", "sentry_key=key"},
	{"https://key@[2001:db8::7]:65535/p/1", "https://[2001:db8::7]:65535/p/api/1/envelope/",
	 "sentry_key=key"},
	{"HTTPS://key@Host/1", "https://Host/api/1/envelope/", "sentry_key=key"},
	{"https://key@host//1", "https://host/api/1/envelope/", "sentry_key=key"},
	{"https://key@host/p//1", "https://host/p/api/1/envelope/", "sentry_key=key"},
};

TESTS(a_valid_dsn_gives_url_and_header, array_size(good))
{
	char text[DSN_ENDPOINT_SIZE];
	char auth[DSN_AUTH_SIZE] = "Sentry sentry_version=7, "
				   "sentry_client=sentry.native.profd/1.2.3, ";
	struct dsn d;

	strncat(auth, good[_i].auth, sizeof(auth) - strlen(auth) - 1);
	ck_assert_int_eq(dsn_parse(&d, good[_i].text), DSN_OK);
	OK(dsn_endpoint(&d, text, sizeof(text)));
	ck_assert_str_eq(text, good[_i].endpoint);
	OK(dsn_auth(&d, "sentry.native.profd/1.2.3", text, sizeof(text)));
	ck_assert_str_eq(text, auth);
}

static const struct {
	const char *text, *place;
} places[] = {
	{"https://key:secret@sentry.example/prefix/42", "sentry.example:443/42"},
	{"http://key@sentry.example/42", "sentry.example:80/42"},
	{"https://key@[::1]:8443/1", "[::1]:8443/1"},
};

TESTS(the_label_has_no_key, array_size(places))
{
	char text[DSN_LABEL_SIZE];
	struct dsn d;

	ck_assert_int_eq(dsn_parse(&d, places[_i].text), DSN_OK);
	dsn_label(&d, text);
	ck_assert_str_eq(text, places[_i].place);
}

static const struct {
	const char *text;
	enum dsn_result result;
} bad[] = {
	{"", DSN_EMPTY},
	{" ", DSN_BAD_SCHEME},
	{"https", DSN_BAD_SCHEME},
	{"https:/", DSN_BAD_SCHEME},
	{"ftp://key@host/1", DSN_BAD_SCHEME},
	{" https://key@host/1", DSN_BAD_SCHEME},
	{"key@host/1", DSN_BAD_SCHEME},
	{"https://", DSN_NO_KEY},
	{"https://host/1", DSN_NO_KEY},
	{"https://@host/1", DSN_NO_KEY},
	{"https://:secret@host/1", DSN_NO_KEY},
	{"https://host/key@1", DSN_NO_KEY},
	{"https://k\r\nX-Evil: 1@host/1", DSN_BAD_KEY},
	{"https://k\nk@host/1", DSN_BAD_KEY},
	{"https://k k@host/1", DSN_BAD_KEY},
	{"https://k\tk@host/1", DSN_BAD_KEY},
	{"https://k\177@host/1", DSN_BAD_KEY},
	{"https://k\303\244@host/1", DSN_BAD_KEY},
	{"https://k,sentry_secret=x@host/1", DSN_BAD_KEY},
	{"https://k@k@host/1", DSN_BAD_KEY},
	{"https://k:s\r\n@host/1", DSN_BAD_SECRET},
	{"https://k:s:s@host/1", DSN_BAD_SECRET},
	{"https://key@", DSN_NO_HOST},
	{"https://key@/1", DSN_NO_HOST},
	{"https://key@:80/1", DSN_NO_HOST},
	{"https://key@ho st/1", DSN_BAD_HOST},
	{"https://key@host\n/1", DSN_BAD_HOST},
	{"https://key@host?x/1", DSN_BAD_HOST},
	{"https://key@[::1/1", DSN_BAD_HOST},
	{"https://key@[::1]x/1", DSN_BAD_HOST},
	{"https://key@[]/1", DSN_BAD_HOST},
	{"https://key@[fe80::1%25eth0]/1", DSN_BAD_HOST},
	{"https://key@[host]/1", DSN_BAD_HOST},
	{"https://key@::1/1", DSN_BAD_PORT},
	{"https://key@host:/1", DSN_BAD_PORT},
	{"https://key@host:0/1", DSN_BAD_PORT},
	{"https://key@host:65536/1", DSN_BAD_PORT},
	{"https://key@host:99999999999999999999/1", DSN_BAD_PORT},
	{"https://key@host:8x/1", DSN_BAD_PORT},
	{"https://key@host:+8/1", DSN_BAD_PORT},
	{"https://key@[::1]:/1", DSN_BAD_PORT},
	{"https://key@host/a b/1", DSN_BAD_PATH},
	{"https://key@host/../1", DSN_BAD_PATH},
	{"https://key@host/a/./1", DSN_BAD_PATH},
	{"https://key@host/a%2f/1", DSN_BAD_PATH},
	{"https://key@host", DSN_NO_PROJECT},
	{"https://key@host/", DSN_NO_PROJECT},
	{"https://key@host/1/", DSN_NO_PROJECT},
	{"https://key@host/1\n", DSN_BAD_PROJECT},
	{"https://key@host/1?x=y", DSN_BAD_PROJECT},
	{"https://key@host/1#x", DSN_BAD_PROJECT},
	{"https://key@host/..", DSN_BAD_PROJECT},
};

TESTS(an_invalid_dsn_is_refused_with_its_fault, array_size(bad))
{
	struct dsn d;

	memset(&d, 0x5a, sizeof(d));
	ck_assert_int_eq(dsn_parse(&d, bad[_i].text), bad[_i].result);
	/* The result is not written. */
	for (size_t i = 0; i < sizeof(d); i++)
		ck_assert_int_eq(((const uint8_t *)&d)[i], 0x5a);
	ck_assert_str_ne(dsn_result_text(bad[_i].result), "");
}

/* Parses a DSN with a part of n bytes between before and after, and checks the result. */
static struct dsn check_long(enum dsn_result result, const char *before, size_t n,
			     const char *after)
{
	struct dsn d = {0};
	char text[4 * DSN_SIZE];
	size_t at = strlen(before);

	ck_assert_uint_lt(at + n + strlen(after), sizeof(text));
	memcpy(text, before, at);
	memset(text + at, 'a', n);
	memcpy(text + at + n, after, strlen(after) + 1);
	ck_assert_int_eq(dsn_parse(&d, text), result);
	return d;
}

TEST(each_part_has_a_limit_of_length)
{
	const struct dsn d = check_long(DSN_OK, "https://", DSN_KEY_SIZE - 1, "@h/1");

	ck_assert_uint_eq(strlen(d.public_key), DSN_KEY_SIZE - 1);
	(void)check_long(DSN_BAD_KEY, "https://", DSN_KEY_SIZE, "@h/1");
	(void)check_long(DSN_BAD_SECRET, "https://k:", DSN_KEY_SIZE, "@h/1");
	(void)check_long(DSN_BAD_HOST, "https://k@", DSN_HOST_SIZE, "/1");
	(void)check_long(DSN_BAD_HOST, "https://k@[", DSN_HOST_SIZE, "]/1");
	(void)check_long(DSN_BAD_PATH, "https://k@h/", DSN_PATH_SIZE, "/1");
	(void)check_long(DSN_BAD_PROJECT, "https://k@h/", DSN_PROJECT_SIZE, "");
	(void)check_long(DSN_TOO_LONG, "https://k@h/1", DSN_SIZE, "");
}

TEST(the_longest_dsn_fits_and_small_buffers_are_refused)
{
	char text[DSN_ENDPOINT_SIZE];
	char client[65];
	struct dsn d;

	memset(&d, 'a', sizeof(d));
	memset(client, 'c', sizeof(client) - 1);
	client[sizeof(client) - 1] = '\0';
	d.https = true;
	d.port = 65535;
	d.public_key[DSN_KEY_SIZE - 1] = '\0';
	d.secret[DSN_KEY_SIZE - 1] = '\0';
	d.host[DSN_HOST_SIZE - 1] = '\0';
	d.path[DSN_PATH_SIZE - 1] = '\0';
	d.project[DSN_PROJECT_SIZE - 1] = '\0';
	OK(dsn_endpoint(&d, text, sizeof(text)));
	OK(dsn_auth(&d, client, text, DSN_AUTH_SIZE));
	ck_assert_int_eq(dsn_auth(&d, client, text, strlen(text)), -E2BIG);
	ck_assert_int_eq(dsn_endpoint(&d, text, 40), -E2BIG);
}

TEST(every_result_has_its_own_text)
{
	for (int a = DSN_OK; a <= DSN_BAD_PROJECT; a++) {
		for (int b = DSN_OK; b < a; b++)
			ck_assert_str_ne(dsn_result_text((enum dsn_result)a),
					 dsn_result_text((enum dsn_result)b));
	}
	ck_assert_str_eq(dsn_result_text(DSN_NO_KEY), "the DSN has no public key: "
						      "expected https://KEY@HOST/PROJECT");
}

static const struct {
	const char *text;
	enum dsn_result result;
	const char *endpoint, *place;
} urls[] = {
	{"http://localhost:8969/stream", DSN_OK, "http://localhost:8969/stream", "localhost:8969"},
	{"HTTPS://host", DSN_OK, "https://host", "host:443"},
	{"http://[::1]/a/b", DSN_OK, "http://[::1]/a/b", "[::1]:80"},
	{"", DSN_EMPTY, NULL, NULL},
	{"localhost:8969/stream", DSN_BAD_SCHEME, NULL, NULL},
	{"http:///stream", DSN_NO_HOST, NULL, NULL},
	{"http://key@host/stream", DSN_BAD_HOST, NULL, NULL},
	{"http://host:0/stream", DSN_BAD_PORT, NULL, NULL},
	{"http://host/stream?x=y", DSN_BAD_PATH, NULL, NULL},
	{"http://host/a/../b", DSN_BAD_PATH, NULL, NULL},
};

TESTS(a_url_has_no_key, array_size(urls))
{
	char text[DSN_ENDPOINT_SIZE], place[DSN_LABEL_SIZE];
	struct dsn d;

	memset(&d, 0x5a, sizeof(d));
	ck_assert_int_eq(dsn_parse_url(&d, urls[_i].text), urls[_i].result);
	if (urls[_i].result != DSN_OK) {
		for (size_t i = 0; i < sizeof(d); i++)
			ck_assert_int_eq(((const uint8_t *)&d)[i], 0x5a);
		return;
	}
	OK(dsn_endpoint(&d, text, sizeof(text)));
	ck_assert_str_eq(text, urls[_i].endpoint);
	dsn_label(&d, place);
	ck_assert_str_eq(place, urls[_i].place);
	ck_assert_str_eq(d.public_key, "");
	ck_assert_str_eq(d.project, "");
}

/* Returns whether text is printable ASCII without the bytes in but. */
static bool is_clean(const char *text, const char *but)
{
	for (; *text != '\0'; text++) {
		if (*text < 0x20 || *text >= 0x7f || strchr(but, *text) != NULL)
			return false;
	}
	return true;
}

/* Checks that no part can break a URL or a header. */
static void check_accepted(const struct dsn *d)
{
	char text[DSN_ENDPOINT_SIZE];

	OK(dsn_endpoint(d, text, sizeof(text)));
	ck_assert(is_clean(text, " ?#@%"));
	OK(dsn_auth(d, "c/1", text, sizeof(text)));
	ck_assert(is_clean(text, "\"@%;"));
}

TEST(changed_bytes_cannot_break_a_url_or_a_header)
{
	static const char start[] = "https://key:s@[::1]:80/p/1";
	/* Mostly characters with a meaning, so that the parser gets far. */
	static const char bytes[] = "/:@[]%.?#\r\n\0 kp18a\377,=-";
	uint64_t state = 1;
	size_t accepted = 0;

	for (int round = 0; round < 100000; round++) {
		char text[sizeof(start) + 8];
		size_t len = sizeof(start) - 1;
		struct dsn d;

		memcpy(text, start, sizeof(start));
		for (uint64_t n = random_next(&state) % 5; n > 0; n--) {
			size_t at = random_next(&state) % len;
			char c = bytes[random_next(&state) % sizeof(bytes)];

			if (random_next(&state) % 2 == 0) {
				text[at] = c;
			} else {
				memmove(text + at, text + at + 1, len - at);
				len--;
			}
		}
		if (dsn_parse(&d, text) == DSN_OK) {
			check_accepted(&d);
			accepted++;
		}
	}
	/* The test checks something only if texts were accepted. */
	ck_assert_uint_gt(accepted, 1000);
}

/* DSNs of a row have the same hash, DSNs of different rows do not. */
static const char *const hashed[][3] = {
	{"https://key@host/1", "HTTPS://key@host//1", "https://key:s@host/1"},
	{"http://key@host/1", "HTTP://key:@host/1", "http://key@host//1"},
	{"https://other@host/1"},
	{"https://key@other/1"},
	{"https://key@host:1/1"},
	{"https://key@host:2/1"},
	{"https://key@host/2"},
	{"https://key@host/p/1", "https://key@host/p//1"},
};

static uint64_t hash_of(const char *text)
{
	struct dsn d;

	ck_assert_int_eq(dsn_parse(&d, text), DSN_OK);
	return dsn_hash(&d);
}

TESTS(the_hash_identifies_the_project, array_size(hashed))
{
	const size_t n = sizeof(hashed) / sizeof(hashed[0]);
	const uint64_t hash = hash_of(hashed[_i][0]);

	for (size_t i = 1; i < 3 && hashed[_i][i] != NULL; i++)
		ck_assert_uint_eq(hash_of(hashed[_i][i]), hash);
	for (size_t i = (size_t)_i + 1; i < n; i++)
		ck_assert_uint_ne(hash_of(hashed[i][0]), hash);
}

static const struct {
	const char *dsn, *text, *hidden;
} hidden[] = {
	{"https://0123456789ab@h/1", "to http://0123456789ab@h/0123456789ab",
	 "to http://************@h/************"},
	{"https://0123456789ab:secretsecret@h/1", "secretsecret and 0123456789ab, no secret",
	 "************ and ************, no secret"},
	{"https://01234567@h/1", "0123456701234567", "****************"},
	{"https://0123456@h/1", "0123456", "0123456"},
	{"https://0123456789ab@h/1", "", ""},
};

TESTS(keys_are_hidden, array_size(hidden))
{
	struct dsn d;
	char text[64];

	ck_assert_int_eq(dsn_parse(&d, hidden[_i].dsn), DSN_OK);
	(void)snprintf(text, sizeof(text), "%s", hidden[_i].text);
	dsn_hide_keys(&d, text);
	ck_assert_str_eq(text, hidden[_i].hidden);
}
