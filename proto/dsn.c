#include "proto/dsn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HTTPS "https://"
#define HTTP  "http://"

/* A part of the text that is being parsed; not NUL-terminated. */
struct part {
	const char *at;
	size_t len;
};

/* isdigit(3) and isalnum(3) are not used, because they depend on the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* RFC 3986, 2.3. The comma and "=" of X-Sentry-Auth are not among them. */
static bool is_unreserved(char c)
{
	return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

/* Copies p if it fits and has only unreserved characters and the character also. */
static bool copy_part(char *to, size_t size, struct part p, char also)
{
	if (p.len >= size)
		return false;
	for (size_t i = 0; i < p.len; i++) {
		if (!is_unreserved(p.at[i]) && p.at[i] != also)
			return false;
	}
	memcpy(to, p.at, p.len);
	to[p.len] = '\0';
	return true;
}

/* Splits *p at the first c: *ret is the text before c, *p the text after it. */
static bool cut(struct part *p, char c, struct part *ret)
{
	const char *hit = memchr(p->at, c, p->len);

	if (hit == NULL)
		return false;
	*ret = (struct part){p->at, (size_t)(hit - p->at)};
	p->len -= ret->len + 1;
	p->at = hit + 1;
	return true;
}

static enum dsn_result parse_user(struct dsn *d, struct part user)
{
	struct part secret = {"", 0};
	struct part key;

	if (cut(&user, ':', &key))
		secret = user;
	else
		key = user;
	if (key.len == 0)
		return DSN_NO_KEY;
	if (!copy_part(d->public_key, sizeof(d->public_key), key, '-'))
		return DSN_BAD_KEY;
	if (!copy_part(d->secret, sizeof(d->secret), secret, '-'))
		return DSN_BAD_SECRET;
	return DSN_OK;
}

static enum dsn_result parse_port(struct dsn *d, struct part port)
{
	unsigned int n = 0;

	/* 5 digits at most, so n cannot overflow. */
	if (port.len == 0 || port.len > 5)
		return DSN_BAD_PORT;
	for (size_t i = 0; i < port.len; i++) {
		if (!is_digit(port.at[i]))
			return DSN_BAD_PORT;
		n = n * 10 + (unsigned int)(port.at[i] - '0');
	}
	if (n == 0 || n > UINT16_MAX)
		return DSN_BAD_PORT;
	d->port = (uint16_t)n;
	return DSN_OK;
}

static enum dsn_result parse_ipv6(struct dsn *d, struct part *host)
{
	char inner[INET6_ADDRSTRLEN];
	struct in6_addr ignored;
	struct part address;

	if (!cut(host, ']', &address))
		return DSN_BAD_HOST;
	address.at++;
	address.len--;
	if (address.len >= sizeof(inner))
		return DSN_BAD_HOST;
	memcpy(inner, address.at, address.len);
	inner[address.len] = '\0';
	if (inet_pton(AF_INET6, inner, &ignored) != 1)
		return DSN_BAD_HOST;
	(void)snprintf(d->host, sizeof(d->host), "[%s]", inner);
	return DSN_OK;
}

static enum dsn_result parse_host(struct dsn *d, struct part host)
{
	struct part name;
	enum dsn_result r;

	d->port = 0;
	if (host.len > 0 && host.at[0] == '[') {
		r = parse_ipv6(d, &host);
		if (r != DSN_OK || host.len == 0)
			return r;
		if (host.at[0] != ':')
			return DSN_BAD_HOST;
		return parse_port(d, (struct part){host.at + 1, host.len - 1});
	}
	if (cut(&host, ':', &name)) {
		r = parse_port(d, host);
		if (r != DSN_OK)
			return r;
	} else {
		name = host;
	}
	if (name.len == 0)
		return DSN_NO_HOST;
	if (!copy_part(d->host, sizeof(d->host), name, '-'))
		return DSN_BAD_HOST;
	return DSN_OK;
}

/* A path with a segment "." or ".." is refused: a proxy would resolve the segment. */
static bool has_dot_segment(const char *path)
{
	size_t len;

	for (const char *at = path; *at != '\0'; at += len) {
		at += strspn(at, "/");
		len = strcspn(at, "/");
		if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
			return true;
	}
	return false;
}

/* Parses the text after the host, from the first slash on. */
static enum dsn_result parse_path(struct dsn *d, struct part path)
{
	const char *slash = memrchr(path.at, '/', path.len);
	struct part project;

	if (slash == NULL)
		return DSN_NO_PROJECT;
	project.at = slash + 1;
	project.len = path.len - (size_t)(project.at - path.at);
	path.len = (size_t)(slash - path.at);
	while (path.len > 0 && path.at[path.len - 1] == '/')
		path.len--;

	if (!copy_part(d->path, sizeof(d->path), path, '/') || has_dot_segment(d->path))
		return DSN_BAD_PATH;
	if (project.len == 0)
		return DSN_NO_PROJECT;
	if (!copy_part(d->project, sizeof(d->project), project, '-') || has_dot_segment(d->project))
		return DSN_BAD_PROJECT;
	return DSN_OK;
}

/* Splits text into the scheme, the authority (user, host, port) and the path. */
static enum dsn_result split(struct dsn *d, const char *text, struct part *ret_authority,
			     struct part *ret_path)
{
	struct part remaining = {text, strnlen(text, DSN_SIZE)};
	size_t scheme;

	if (remaining.len == 0)
		return DSN_EMPTY;
	if (remaining.len >= DSN_SIZE)
		return DSN_TOO_LONG;
	d->https = strncasecmp(text, HTTPS, strlen(HTTPS)) == 0;
	if (!d->https && strncasecmp(text, HTTP, strlen(HTTP)) != 0)
		return DSN_BAD_SCHEME;
	scheme = strlen(d->https ? HTTPS : HTTP);
	remaining.at += scheme;
	remaining.len -= scheme;
	*ret_authority = (struct part){remaining.at, strcspn(remaining.at, "/")};
	*ret_path = (struct part){remaining.at + ret_authority->len,
				  remaining.len - ret_authority->len};
	return DSN_OK;
}

enum dsn_result dsn_parse(struct dsn *ret, const char *text)
{
	struct part authority, user, path;
	enum dsn_result r;
	struct dsn d;
	const char *at;

	r = split(&d, text, &authority, &path);
	if (r != DSN_OK)
		return r;
	/* The last "@": then an "@" in the key is reported as an error of the key. */
	at = memrchr(authority.at, '@', authority.len);
	if (at == NULL)
		return DSN_NO_KEY;
	user = (struct part){authority.at, (size_t)(at - authority.at)};
	authority.len -= user.len + 1;
	authority.at = at + 1;

	r = parse_user(&d, user);
	if (r == DSN_OK)
		r = parse_host(&d, authority);
	if (r == DSN_OK)
		r = parse_path(&d, path);
	if (r == DSN_OK)
		*ret = d;
	return r;
}

enum dsn_result dsn_parse_url(struct dsn *ret, const char *text)
{
	struct dsn d = {.https = false};
	struct part host, path;
	enum dsn_result r;

	r = split(&d, text, &host, &path);
	if (r == DSN_OK)
		r = parse_host(&d, host);
	if (r == DSN_OK &&
	    (!copy_part(d.path, sizeof(d.path), path, '/') || has_dot_segment(d.path)))
		r = DSN_BAD_PATH;
	if (r == DSN_OK)
		*ret = d;
	return r;
}

#define EXPECTED ": expected https://KEY@HOST/PROJECT"

const char *dsn_result_text(enum dsn_result result)
{
	switch (result) {
	case DSN_OK:
		return "";
	case DSN_EMPTY:
		return "the DSN is empty: nothing will be sent";
	case DSN_TOO_LONG:
		return "the DSN is too long" EXPECTED;
	case DSN_BAD_SCHEME:
		return "the DSN does not start with https:// or "
		       "http://" EXPECTED;
	case DSN_NO_KEY:
		return "the DSN has no public key" EXPECTED;
	case DSN_BAD_KEY:
		return "the DSN's public key has a character that no key has, "
		       "or is too long" EXPECTED;
	case DSN_BAD_SECRET:
		return "the DSN's secret key has a character that no key has, "
		       "or is too long" EXPECTED;
	case DSN_NO_HOST:
		return "the DSN has no host" EXPECTED;
	case DSN_BAD_HOST:
		return "the DSN's host is neither a host name nor an address "
		       "(IPv6 in brackets)" EXPECTED;
	case DSN_BAD_PORT:
		return "the DSN's port is not a number from 1 to "
		       "65535" EXPECTED;
	case DSN_BAD_PATH:
		return "the DSN's path has a character that does not belong "
		       "there" EXPECTED;
	case DSN_NO_PROJECT:
		return "the DSN has no project id after its last "
		       "slash" EXPECTED;
	case DSN_BAD_PROJECT:
		return "the DSN's project id has a character that does not "
		       "belong there, or is too long" EXPECTED;
	}
	return "the DSN is malformed" EXPECTED;
}

static int result_of_printf(int printed, size_t size)
{
	return printed < 0 || (size_t)printed >= size ? -E2BIG : 0;
}

int dsn_endpoint(const struct dsn *dsn, char *ret, size_t size)
{
	const bool is_url = dsn->project[0] == '\0';
	char port[sizeof(":65535")] = "";

	if (dsn->port != 0)
		(void)snprintf(port, sizeof(port), ":%u", (unsigned int)dsn->port);
	return result_of_printf(snprintf(ret, size, "%s%s%s%s%s%s%s", dsn->https ? HTTPS : HTTP,
					 dsn->host, port, dsn->path, is_url ? "" : "/api/",
					 dsn->project, is_url ? "" : "/envelope/"),
				size);
}

void dsn_label(const struct dsn *dsn, char ret[DSN_LABEL_SIZE])
{
	const unsigned int default_port = dsn->https ? 443 : 80;

	(void)snprintf(ret, DSN_LABEL_SIZE, "%s:%u%s%s", dsn->host,
		       dsn->port != 0 ? dsn->port : default_port,
		       dsn->project[0] != '\0' ? "/" : "", dsn->project);
}

int dsn_auth(const struct dsn *dsn, const char *client, char *ret, size_t size)
{
	bool secret = dsn->secret[0] != '\0';

	return result_of_printf(snprintf(ret, size,
					 "Sentry sentry_version=7, sentry_client=%s, "
					 "sentry_key=%s%s%s",
					 client, dsn->public_key, secret ? ", sentry_secret=" : "",
					 dsn->secret),
				size);
}

/* FNV-1a. */
uint64_t dsn_hash(const struct dsn *dsn)
{
	const char *const parts[] = {dsn->host, dsn->path, dsn->project, dsn->public_key};
	/* A port has 16 bits. */
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ dsn->port ^ (dsn->https ? 0 : 1u << 16);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		/* With the NUL, which keeps "a" "bc" and "ab" "c" apart. */
		for (size_t n = 0; n <= strlen(parts[i]); n++)
			hash = (hash ^ (uint8_t)parts[i][n]) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t dsn_hash_of_text(const char *text)
{
	uint64_t hash = 0;
	struct dsn dsn;

	if (dsn_parse(&dsn, text) == DSN_OK)
		hash = dsn_hash(&dsn);
	explicit_bzero(&dsn, sizeof(dsn));
	return hash;
}

static void hide(const char *key, char *text)
{
	const size_t n = strlen(key);

	if (n < DSN_KEY_HIDDEN_MIN)
		return;
	for (char *at = strstr(text, key); at != NULL; at = strstr(at + n, key))
		memset(at, '*', n);
}

void dsn_hide_keys(const struct dsn *dsn, char *text)
{
	hide(dsn->public_key, text);
	hide(dsn->secret, text);
}
