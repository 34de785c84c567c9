#include "daemon/unwind/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/digits.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* Limit of OTEL_RESOURCE_ATTRIBUTES; a dozen attributes take some hundred bytes. */
#define ATTRIBUTES_MAX 4096

/* Releases of executables whose image was read, a ring. */
static struct known {
	char *exe, *file, *release;
} known[RELEASE_KNOWN_MAX];
static size_t n_known; /* added so far, also those that were overwritten */

/* Finds the first variable of this name whose value is not empty and fits. */
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

/* Decodes %XX in place. Returns false if the text is malformed. */
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

/* Removes blanks at both ends. */
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
	const char *name, *version, *environment; /* NULL: not set */
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

/* Parses text in place; the attributes point into it. */
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

static void read_otel(const char *text, size_t len, struct release_names *ret)
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

void release_of_environ(const char *text, size_t len, struct release_names *ret)
{
	char profiler[sizeof("off")] = "";

	*ret = (struct release_names){.release = ""};
	(void)find_variable(text, len, "SENTRY_PROFILER", profiler, sizeof(profiler));
	ret->declines = strcmp(profiler, "off") == 0;
	(void)find_variable(text, len, "SENTRY_RELEASE", ret->release, sizeof(ret->release));
	(void)find_variable(text, len, "SENTRY_ENVIRONMENT", ret->environment,
			    sizeof(ret->environment));
	if (ret->release[0] == '\0' || ret->environment[0] == '\0')
		read_otel(text, len, ret);
}

static const struct known *find_known(const char *exe, const char *file)
{
	for (size_t i = 0; i < min_u64(n_known, RELEASE_KNOWN_MAX); i++)
		if (strcmp(known[i].exe, exe) == 0 && strcmp(known[i].file, file) == 0)
			return &known[i];
	return NULL;
}

static void free_known(struct known *k)
{
	free(k->exe);
	free(k->file);
	free(k->release);
}

/* Remembers a release. Without memory it does nothing. */
static void remember(const char *exe, const char *file, const char *release)
{
	struct known *oldest = &known[n_known % RELEASE_KNOWN_MAX];
	struct known k;

	if (*file == '\0' || find_known(exe, file) != NULL)
		return;
	k = (struct known){strdup(exe), strdup(file), strdup(release)};
	if (k.exe == NULL || k.file == NULL || k.release == NULL) {
		free_known(&k);
		return;
	}
	free_known(oldest);
	*oldest = k;
	n_known++;
}

bool release_of_image(const char *exe, const char *file, struct unwind_space *space, char *ret,
		      size_t size)
{
	const char *name = strrchr(exe, '/');
	const struct known *another;
	struct unwind_image image;
	size_t at;
	int n;

	name = name == NULL ? exe : name + 1;
	n = snprintf(ret, size, "%.128s@", *name == '\0' ? "unknown" : name);
	at = n < 0 ? 0 : (size_t)n;
	if (unwind_image_of_path(space, exe, &image) == 0 && image.id != NULL) {
		/* 12 hex digits of the build-id. */
		for (size_t i = 0; i < 6 && i < image.id_size; i++)
			at += (size_t)snprintf(ret + at, size - at, "%02x", image.id[i]);
		remember(exe, file, ret);
		return true;
	}
	another = find_known(exe, file);
	if (another != NULL)
		(void)snprintf(ret, size, "%s", another->release);
	else
		(void)snprintf(ret + at, size - at, "unknown");
	return another != NULL;
}

bool release_is_new(const char *release)
{
	static char *seen[RELEASE_SEEN_MAX];
	static size_t n;

	for (size_t i = 0; i < n; i++)
		if (strcmp(seen[i], release) == 0)
			return false;
	if (n < RELEASE_SEEN_MAX) {
		seen[n] = strdup(release);
		n += seen[n] != NULL;
	}
	return true;
}

void release_clean(char *text)
{
	while (*text != '\0') {
		size_t n = utf8_length(text);

		if (n == 0 || (n == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f)))
			*text = '_';
		text += max_u64(n, 1);
	}
}
