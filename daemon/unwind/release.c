#include "daemon/unwind/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"

/* Releases of executables that were read, the oldest overwritten first. */
static struct known {
	char *exe, *file, *release;
} known[RELEASE_KNOWN_MAX];
static size_t n_known; /* that were ever remembered */

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

/* Without memory it is not remembered. */
static void remember(const char *exe, const char *file, const char *release)
{
	struct known *place = &known[n_known % RELEASE_KNOWN_MAX];
	struct known k;

	if (*file == '\0' || find_known(exe, file) != NULL)
		return;
	k = (struct known){strdup(exe), strdup(file), strdup(release)};
	if (k.exe == NULL || k.file == NULL || k.release == NULL) {
		free_known(&k);
		return;
	}
	free_known(place);
	*place = k;
	n_known++;
}

bool release_of_image(const char *exe, const char *file, struct unwind_space *space, char *ret,
		      size_t size)
{
	const char *name = strrchr(exe, '/');
	const struct known *of_another;
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
	of_another = find_known(exe, file);
	if (of_another != NULL)
		(void)snprintf(ret, size, "%s", of_another->release);
	else
		(void)snprintf(ret + at, size - at, "unknown");
	return of_another != NULL;
}

bool release_is_new(const char *release)
{
	static char *told[RELEASE_TOLD_MAX];
	static size_t n;

	for (size_t i = 0; i < n; i++)
		if (strcmp(told[i], release) == 0)
			return false;
	if (n < RELEASE_TOLD_MAX) {
		told[n] = strdup(release);
		n += told[n] != NULL;
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
