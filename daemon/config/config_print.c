#include "daemon/config/config_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "proto/dsn.h"

#define CONST_FIELD(type, key, base) \
	((const type *)(const void *)((const char *)(base) + (key)->offset))

/* A section with its longest texts has 6 KB. */
#define PRINT_BYTES_MAX (4u << 20)

/* The size of the longest value, with the NUL. */
#define VALUE_MAX CONFIG_NO_PROXY_MAX

/* Writes a DSN without its key: https://...@host/42. */
static void print_dsn(const char *text, char ret[VALUE_MAX])
{
	struct dsn dsn;
	char port[8] = "";

	if (dsn_parse(&dsn, text) != DSN_OK) {
		ret[0] = '\0';
		return;
	}
	if (dsn.port != 0)
		(void)snprintf(port, sizeof(port), ":%u", dsn.port);
	(void)snprintf(ret, VALUE_MAX, "%s://...@%s%s%s/%s", dsn.https ? "https" : "http", dsn.host,
		       port, dsn.path, dsn.project);
	explicit_bzero(&dsn, sizeof(dsn));
}

/* Writes a proxy's URL without user and password. */
static void print_proxy(const char *text, char ret[VALUE_MAX])
{
	const char *at = strrchr(text, '@'), *scheme = strstr(text, "://");
	size_t n = scheme == NULL ? 0 : (size_t)(scheme + 3 - text);

	if (at == NULL)
		(void)snprintf(ret, VALUE_MAX, "%s", text);
	else
		(void)snprintf(ret, VALUE_MAX, "%.*s...%s", (int)n, text, at);
}

/* Writes a value as in a file, a secret in part. Returns false if nothing is to be printed. */
static bool print_value(const struct config_key *key, const void *base, char ret[VALUE_MAX])
{
	unsigned int word;
	double decimal;

	switch (key->type) {
	case KEY_TEXT:
	case KEY_PATTERN:
	case KEY_PATH:
	case KEY_SPOOL:
	case KEY_SPOTLIGHT:
	case KEY_USER:
		(void)snprintf(ret, VALUE_MAX, "%s", CONST_FIELD(char, key, base));
		return ret[0] != '\0';
	case KEY_PROXY:
		print_proxy(CONST_FIELD(char, key, base), ret);
		return ret[0] != '\0';
	case KEY_DSN:
		print_dsn(CONST_FIELD(char, key, base), ret);
		return true;
	case KEY_BOOL:
		(void)snprintf(ret, VALUE_MAX, "%s", *CONST_FIELD(bool, key, base) ? "yes" : "no");
		return true;
	case KEY_NUMBER:
		(void)snprintf(ret, VALUE_MAX, "%u", *CONST_FIELD(uint32_t, key, base));
		/* False for max_instances = 0, no limit, which cannot be written in a file. */
		return *CONST_FIELD(uint32_t, key, base) >= key->min;
	case KEY_FRACTION:
	case KEY_SECONDS:
		memcpy(&decimal, CONST_FIELD(char, key, base), sizeof(decimal));
		(void)snprintf(ret, VALUE_MAX, "%.12g", decimal);
		return true;
	case KEY_BYTES:
		(void)snprintf(ret, VALUE_MAX, "%" PRIu64, *CONST_FIELD(uint64_t, key, base));
		return true;
	case KEY_WORD:
		memcpy(&word, CONST_FIELD(char, key, base), sizeof(word));
		(void)snprintf(ret, VALUE_MAX, "%s", key->words[word]);
		return true;
	case KEY_ENV:
	case KEY_DSN_FILE:
	case KEY_IGNORED:
		return false;
	}
	return false;
}

/* Compares what is printed, except for values that are printed in part or under a name. */
bool config_value_equal(const struct config_key *key, const void *a, const void *b)
{
	const struct section_config *x = a, *y = b;
	char of_a[VALUE_MAX] = "", of_b[VALUE_MAX] = "";

	if (key->type == KEY_USER)
		return x->uid == y->uid;
	if (key->type == KEY_DSN || key->type == KEY_DSN_FILE || key->type == KEY_PROXY ||
	    key->type == KEY_ENV)
		return strcmp(CONST_FIELD(char, key, a), CONST_FIELD(char, key, b)) == 0;
	(void)!print_value(key, a, of_a);
	(void)!print_value(key, b, of_b);
	return strcmp(of_a, of_b) == 0;
}

bool config_section_equal(const struct section_config *a, const struct section_config *b)
{
	if (a->is_off != b->is_off || (a->is_off && strcmp(a->defect, b->defect) != 0))
		return false;
	/* The default text, given, is another value: the processes' own variables do not count. */
	if (a->environment_given != b->environment_given)
		return false;
	for (size_t i = 0; i < config_n_keys; i++)
		if (config_keys[i].section == SECTION_TARGET &&
		    !config_value_equal(&config_keys[i], a, b))
			return false;
	return true;
}

bool config_equal(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (config_keys[i].section != SECTION_TARGET &&
		    !config_value_equal(&config_keys[i], a, b))
			return false;
	if (a->n_sections != b->n_sections)
		return false;
	for (size_t k = 0; k < a->n_sections; k++)
		if (strcmp(a->sections[k].name, b->sections[k].name) != 0 ||
		    !config_section_equal(&a->sections[k], &b->sections[k]))
			return false;
	return true;
}

void config_changed_keys(const struct config *old, const struct config *new, config_key_fn fn,
			 void *ctx)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (!key->is_reloadable && !config_value_equal(key, old, new))
			fn(ctx, config_section_name(key->section), key->name);
	}
}

static int print_env(struct buf *out, const char *text)
{
	int r = 0;

	while (r == 0 && *text != '\0') {
		const int name = (int)strcspn(text, "="), n = (int)strcspn(text, "\n");

		r = buf_printf(out, "env %.*s = %.*s\n", name, text, n - name - 1, text + name + 1);
		text += n + (text[n] == '\n');
	}
	return r;
}

static int print_section(struct buf *out, enum config_section section, const void *base)
{
	char value[VALUE_MAX];
	int r = 0;

	for (size_t i = 0; r == 0 && i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (key->section == section && key->type == KEY_ENV)
			r = print_env(out, CONST_FIELD(char, key, base));
		else if (key->section == section && print_value(key, base, value))
			r = buf_printf(out, "%s = %s\n", key->name, value);
	}
	return r;
}

int config_print(const struct config *c, int fd)
{
	struct buf out;
	int r;

	buf_init(&out, PRINT_BYTES_MAX);
	r = buf_add_string(&out, "[sentry]\n");
	if (r == 0)
		r = print_section(&out, SECTION_SENTRY, c);
	if (r == 0)
		r = buf_add_string(&out, "\n[profiler]\n");
	if (r == 0)
		r = print_section(&out, SECTION_PROFILER, c);
	for (size_t i = 0; r == 0 && i < c->n_sections; i++) {
		r = buf_printf(&out, "\n[target \"%s\"]\n", c->sections[i].name);
		if (r == 0)
			r = print_section(&out, SECTION_TARGET, &c->sections[i]);
	}
	if (r == 0)
		r = write_all(fd, buf_string(&out), out.len);
	buf_fini(&out);
	return r;
}
