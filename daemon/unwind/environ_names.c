#include "daemon/unwind/environ_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/digits.h"
#include "lib/base/util.h"

/* A dozen attributes of usual length are some hundred bytes. */
#define ATTRIBUTES_MAX 4096

/* The value of the first variable of this name that is not empty and fits. */
static bool find_variable(const char *text, size_t len, const char *name, char *ret, size_t size)
{
	const size_t name_len = strlen(name);

	for (size_t at = 0; at < len;) {
		const char *entry = text + at;
		size_t n = strnlen(entry, len - at), skip = name_len + 1;

		if (n > skip && n - skip < size && strncmp(entry, name, name_len) == 0 &&
		    entry[name_len] == '=') {
			memcpy(ret, entry + skip, n - skip);
			ret[n - skip] = '\0';
			return true;
		}
		at += n + 1;
	}
	return false;
}

static int digit(char c)
{
	return digits_value(c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c);
}

/* Replaces %XX by the byte that it stands for; false if it is malformed. */
static bool decode(char *text)
{
	char *out = text;

	for (; *text != '\0'; text++) {
		if (*text == '%') {
			int high = digit(text[1]);
			int low = high < 0 ? -1 : digit(text[2]);

			if (low < 0 || (high == 0 && low == 0))
				return false;
			*out++ = (char)(high << 4 | low);
			text += 2;
		} else {
			*out++ = *text;
		}
	}
	*out = '\0';
	return true;
}

/* Without the blanks around it. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	for (n = strlen(text); n > 0; n--)
		if (text[n - 1] != ' ' && text[n - 1] != '\t')
			break;
	text[n] = '\0';
	return text;
}

struct attributes {
	const char *name, *version, *environment; /* NULL: not there */
};

static void take_attribute(const char *key, const char *value, struct attributes *ret)
{
	if (*value == '\0')
		return;
	if (strcmp(key, "service.name") == 0)
		ret->name = value;
	else if (strcmp(key, "service.version") == 0)
		ret->version = value;
	else if (strcmp(key, "deployment.environment.name") == 0)
		ret->environment = value;
}

/* Changes text, to which the attributes point. */
static void parse_attributes(char *text, struct attributes *ret)
{
	struct attributes found = {NULL, NULL, NULL};
	char *pair;

	*ret = found;
	while ((pair = strsep(&text, ",")) != NULL) {
		char *key = strsep(&pair, "=");

		key = trim(key);
		if (pair == NULL && *key == '\0')
			continue;
		if (pair == NULL || !decode(key))
			return;
		pair = trim(pair);
		if (!decode(pair))
			return;
		take_attribute(key, pair, &found);
	}
	*ret = found;
}

static void copy_if_fits(const char *text, char ret[MSG_TEXT_MAX])
{
	if (strlen(text) < MSG_TEXT_MAX)
		(void)snprintf(ret, MSG_TEXT_MAX, "%s", text);
}

static void read_otel(const char *text, size_t len, struct environ_names *ret)
{
	char values[ATTRIBUTES_MAX], name[MSG_TEXT_MAX];
	char release[2 * MSG_TEXT_MAX + ATTRIBUTES_MAX];
	struct attributes found;

	if (!find_variable(text, len, "OTEL_RESOURCE_ATTRIBUTES", values, sizeof(values)))
		return;
	parse_attributes(values, &found);
	if (find_variable(text, len, "OTEL_SERVICE_NAME", name, sizeof(name)))
		found.name = name;
	if (ret->release[0] == '\0' && found.name != NULL && found.version != NULL) {
		(void)snprintf(release, sizeof(release), "%s@%s", found.name, found.version);
		copy_if_fits(release, ret->release);
	}
	if (ret->environment[0] == '\0' && found.environment != NULL)
		copy_if_fits(found.environment, ret->environment);
}

void environ_names_read(const char *text, size_t len, struct environ_names *ret)
{
	*ret = (struct environ_names){.release = ""};
	(void)find_variable(text, len, "SENTRY_RELEASE", ret->release, sizeof(ret->release));
	(void)find_variable(text, len, "SENTRY_ENVIRONMENT", ret->environment,
			    sizeof(ret->environment));
	if (ret->release[0] == '\0' || ret->environment[0] == '\0')
		read_otel(text, len, ret);
}
