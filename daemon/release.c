#include "daemon/release.h"

#include <stdio.h>
#include <string.h>

#include "proto/profile.h"

bool release_of_environ(const char *text, size_t len, char *ret, size_t size)
{
	static const char key[] = "SENTRY_RELEASE=";
	const size_t key_len = sizeof(key) - 1;

	for (size_t at = 0; at < len;) {
		const char *entry = text + at;
		size_t n = strnlen(entry, len - at);

		if (n > key_len && n - key_len < size &&
		    strncmp(entry, key, key_len) == 0) {
			memcpy(ret, entry + key_len, n - key_len);
			ret[n - key_len] = '\0';
			return true;
		}
		at += n + 1;
	}
	return false;
}

void release_of_image(const char *exe, struct unwind_space *space, char *ret,
		      size_t size)
{
	const char *name = strrchr(exe, '/');
	struct unwind_image image;
	size_t at;
	int n;

	name = name == NULL ? exe : name + 1;
	n = snprintf(ret, size, "%.128s@", *name == '\0' ? "unknown" : name);
	at = n < 0 ? 0 : (size_t)n;
	if (unwind_image_of_path(space, exe, &image) < 0 || image.id == NULL) {
		(void)snprintf(ret + at, size - at, "unknown");
		return;
	}
	/* 12 hex digits of the build-id. */
	for (size_t i = 0; i < 6 && i < image.id_size; i++)
		at += (size_t)snprintf(ret + at, size - at, "%02x",
				       image.id[i]);
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
		size_t n = profile_utf8_length(text);

		if (n == 0 ||
		    (n == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f)))
			*text = '_';
		text += max_u64(n, 1);
	}
}
