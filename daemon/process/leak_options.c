#include "daemon/process/leak_options.h"

#include <string.h>

/* A variable's value: n bytes, without a NUL. v is NULL: not set. */
struct value {
	const char *v;
	size_t n;
};

static bool is_separator(char c)
{
	return c == ' ' || c == ',' || c == ':' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_word(const char *v, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(v, word, n) == 0;
}

/* Changes *is_on as the value says; the sanitizers end the process at other words. */
static void parse_bool(const char *v, size_t n, bool *is_on)
{
	if (is_word(v, n, "0") || is_word(v, n, "no") || is_word(v, n, "false"))
		*is_on = false;
	else if (is_word(v, n, "1") || is_word(v, n, "yes") || is_word(v, n, "true"))
		*is_on = true;
}

/* Returns the end of a flag's value, which begins at at: a quoted text, or one without blanks. */
static size_t end_of_value(const struct value *text, size_t at, size_t *ret_begin)
{
	const char quote = at < text->n ? text->v[at] : '\0';

	if (quote == '\'' || quote == '"') {
		*ret_begin = ++at;
		while (at < text->n && text->v[at] != quote)
			at++;
		return at;
	}
	*ret_begin = at;
	while (at < text->n && !is_separator(text->v[at]))
		at++;
	return at;
}

/* Goes through flags, NAME=VALUE; the last detect_leaks counts. */
static void parse_flags(const struct value *text, bool *is_on)
{
	size_t at = 0;

	while (text->v != NULL && at < text->n) {
		const size_t name = at;
		size_t equals, begin, end;

		if (is_separator(text->v[at])) {
			at++;
			continue;
		}
		while (at < text->n && text->v[at] != '=' && !is_separator(text->v[at]))
			at++;
		/* The sanitizers end the process at a name without a value. */
		if (at == text->n || text->v[at] != '=')
			return;
		equals = at;
		end = end_of_value(text, equals + 1, &begin);
		if (is_word(text->v + name, equals - name, "detect_leaks"))
			parse_bool(text->v + begin, end - begin, is_on);
		at = end;
		/* The closing quote. */
		if (begin != equals + 1 && at < text->n)
			at++;
	}
}

static bool begins_with(const char *v, size_t n, const char *word)
{
	return n >= strlen(word) && memcmp(v, word, strlen(word)) == 0;
}

static enum file_leaks leaks_of_library(const char *path, size_t n)
{
	const char *slash = memrchr(path, '/', n);
	const char *name = slash == NULL ? path : slash + 1;

	n -= (size_t)(name - path);
	if (begins_with(name, n, "libasan.so") || begins_with(name, n, "libclang_rt.asan"))
		return FILE_LEAKS_ASAN;
	if (begins_with(name, n, "liblsan.so") || begins_with(name, n, "libclang_rt.lsan"))
		return FILE_LEAKS_LSAN;
	return FILE_LEAKS_NONE;
}

/* The libraries are separated by blanks or colons: ld.so(8). */
static enum file_leaks parse_preload(const struct value *text)
{
	enum file_leaks found = FILE_LEAKS_NONE;

	for (size_t at = 0; text->v != NULL && at < text->n && found == FILE_LEAKS_NONE; at++) {
		const size_t begin = at;

		while (at < text->n && text->v[at] != ' ' && text->v[at] != ':')
			at++;
		found = leaks_of_library(text->v + begin, at - begin);
	}
	return found;
}

enum variable { ASAN_OPTIONS, LSAN_OPTIONS, LD_PRELOAD, VARIABLES_N };

static void read_values(const struct value v[VARIABLES_N], struct leak_options *ret)
{
	bool asan = true, lsan = true;

	parse_flags(&v[ASAN_OPTIONS], &asan);
	/* AddressSanitizer reads LSAN_OPTIONS after its own variable. */
	parse_flags(&v[LSAN_OPTIONS], &asan);
	parse_flags(&v[LSAN_OPTIONS], &lsan);
	*ret = (struct leak_options){
		.asan_off = !asan, .lsan_off = !lsan, .preloads = parse_preload(&v[LD_PRELOAD])};
}

static struct value value_of(const char *text)
{
	return (struct value){text, text == NULL ? 0 : strlen(text)};
}

void leak_options_read(const char *asan_options, const char *lsan_options, const char *ld_preload,
		       struct leak_options *ret)
{
	const struct value v[VARIABLES_N] = {
		[ASAN_OPTIONS] = value_of(asan_options),
		[LSAN_OPTIONS] = value_of(lsan_options),
		[LD_PRELOAD] = value_of(ld_preload),
	};

	read_values(v, ret);
}

void leak_options_of_environ(const char *environ, size_t size, struct leak_options *ret)
{
	static const char *const names[VARIABLES_N] = {
		[ASAN_OPTIONS] = "ASAN_OPTIONS=",
		[LSAN_OPTIONS] = "LSAN_OPTIONS=",
		[LD_PRELOAD] = "LD_PRELOAD=",
	};
	struct value v[VARIABLES_N] = {{NULL, 0}};

	for (size_t at = 0, n; at < size; at += n + 1) {
		const char *entry = environ + at;

		n = strnlen(entry, size - at);
		for (size_t k = 0; k < VARIABLES_N; k++)
			if (v[k].v == NULL && begins_with(entry, n, names[k]))
				v[k] = (struct value){entry + strlen(names[k]),
						      n - strlen(names[k])};
	}
	read_values(v, ret);
}

bool leak_options_are_off(const struct leak_options *o, enum file_leaks leaks)
{
	switch (leaks) {
	case FILE_LEAKS_ASAN:
		return o->asan_off;
	case FILE_LEAKS_LSAN:
		return o->lsan_off;
	case FILE_LEAKS_NONE:
	case FILE_LEAKS_END:
		break;
	}
	return true;
}
