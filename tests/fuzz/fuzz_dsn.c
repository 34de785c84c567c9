/* A DSN, as somebody has typed it. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/dsn.h"

#define CLIENT "fuzz/1.0"

/* So that each part is at its longest, and one byte more. */
#define TEXT_BYTES_MAX (2 * DSN_SIZE)

static void check_same(const struct dsn *a, const struct dsn *b)
{
	assert(a->https == b->https && a->port == b->port);
	assert(strcmp(a->public_key, b->public_key) == 0);
	assert(strcmp(a->secret, b->secret) == 0);
	assert(strcmp(a->host, b->host) == 0);
	assert(strcmp(a->path, b->path) == 0);
	assert(strcmp(a->project, b->project) == 0);
}

/* Its parts, written as a DSN again, are the same parts. */
static void check_again(const struct dsn *d)
{
	char text[2 * DSN_SIZE], port[8] = "";
	struct dsn again;

	if (d->port != 0)
		(void)snprintf(port, sizeof(port), ":%u", d->port);
	(void)snprintf(text, sizeof(text), "%s://%s%s%s@%s%s%s/%s", d->https ? "https" : "http",
		       d->public_key, d->secret[0] != '\0' ? ":" : "", d->secret, d->host, port,
		       d->path, d->project);
	if (strlen(text) >= DSN_SIZE)
		return;
	assert(dsn_parse(&again, text) == DSN_OK);
	check_same(d, &again);
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += *text == c;
	return n;
}

/* Nothing in it ends the host, begins a query, or is another user. */
static void check_endpoint(const struct dsn *d)
{
	const char *scheme = d->https ? "https://" : "http://";
	char url[DSN_ENDPOINT_SIZE], *path;

	assert(dsn_endpoint(d, url, sizeof(url)) == 0);
	assert(strncmp(url, scheme, strlen(scheme)) == 0);
	for (const char *p = url; *p != '\0'; p++)
		assert(*p > ' ' && *p < 0x7f && strchr("@?#\\%", *p) == NULL);
	path = strchr(url + strlen(scheme), '/');
	assert(path != NULL);
	assert(strstr(path, "/../") == NULL && strstr(path, "/./") == NULL);
	assert(strcmp(url + strlen(url) - strlen("/envelope/"), "/envelope/") == 0);
}

/* It has the fields that it should have, and they have one value each. */
static void check_auth(const struct dsn *d)
{
	const size_t fields = d->secret[0] != '\0' ? 4 : 3;
	char auth[DSN_AUTH_SIZE];

	assert(dsn_auth(d, CLIENT, auth, sizeof(auth)) == 0);
	assert(count(auth, ',') == fields - 1 && count(auth, '=') == fields);
	for (const char *p = auth; *p != '\0'; p++)
		assert(*p >= ' ' && *p < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_BYTES_MAX];
	struct dsn d;
	enum dsn_result r;

	if (size >= sizeof(text))
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	r = dsn_parse(&d, text);
	assert((r == DSN_EMPTY) == (text[0] == '\0'));
	assert((dsn_result_text(r)[0] == '\0') == (r == DSN_OK));
	if (r != DSN_OK)
		return 0;
	check_endpoint(&d);
	check_auth(&d);
	check_again(&d);
	return 0;
}
