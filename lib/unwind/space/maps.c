#include "lib/unwind/space/maps.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "lib/base/array.h"
#include "lib/base/digits.h"

/* The rest of the text. */
struct cursor {
	const char *p;
	const char *end;
};

/* Returns the value of a digit; -1 if it is not a digit of this base. */
static int digit(char c, unsigned int base)
{
	const int value = digits_value(c);

	return value < (int)base ? value : -1;
}

static bool take_number(struct cursor *c, unsigned int base, uint64_t *ret)
{
	const char *first = c->p;
	uint64_t value = 0;

	for (; c->p < c->end && digit(*c->p, base) >= 0; c->p++) {
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit(*c->p, base), &value))
			return false;
	}
	*ret = value;
	return c->p > first;
}

static bool take_char(struct cursor *c, char expected)
{
	if (c->p >= c->end || *c->p != expected)
		return false;
	c->p++;
	return true;
}

static bool take_permissions(struct cursor *c, bool *ret_exec)
{
	const char *p = c->p;

	if (c->end - p < 4 || (p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') ||
	    (p[2] != 'x' && p[2] != '-') || (p[3] != 'p' && p[3] != 's'))
		return false;
	*ret_exec = p[2] == 'x';
	c->p += 4;
	return true;
}

/* Parses a line without its newline. Leaves c at the path. */
static bool parse_line(struct cursor *c, struct map *ret, bool *ret_exec)
{
	uint64_t major;
	uint64_t minor;

	if (!take_number(c, 16, &ret->start) || !take_char(c, '-') ||
	    !take_number(c, 16, &ret->end) || !take_char(c, ' ') ||
	    !take_permissions(c, ret_exec) || !take_char(c, ' ') ||
	    !take_number(c, 16, &ret->offset) || !take_char(c, ' ') ||
	    !take_number(c, 16, &major) || !take_char(c, ':') || !take_number(c, 16, &minor) ||
	    !take_char(c, ' ') || !take_number(c, 10, &ret->inode))
		return false;
	if (ret->start >= ret->end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	ret->device = makedev((unsigned int)major, (unsigned int)minor);
	if (c->p < c->end && *c->p != ' ')
		return false;
	while (c->p < c->end && *c->p == ' ')
		c->p++;
	return true;
}

/* Copies the path to out and terminates it. Returns the end of the copy. */
static char *copy_path(char *out, const struct cursor *c)
{
	static const char deleted[] = " (deleted)";
	static const char newline[] = "\\012";
	const size_t deleted_size = sizeof(deleted) - 1;
	const size_t newline_size = sizeof(newline) - 1;
	const char *p = c->p;
	const char *end = c->end;

	if ((size_t)(end - p) > deleted_size &&
	    memcmp(end - deleted_size, deleted, deleted_size) == 0)
		end -= deleted_size;
	while (p < end) {
		if ((size_t)(end - p) >= newline_size && memcmp(p, newline, newline_size) == 0) {
			*out++ = '\n';
			p += newline_size;
		} else if (*p == '\0') {
			break; /* the kernel writes none */
		} else {
			*out++ = *p++;
		}
	}
	*out++ = '\0';
	return out;
}

int maps_parse(struct maps *m, const char *text, size_t size, size_t max_lines)
{
	const char *end = text + size;
	struct maps new = {NULL, 0, NULL};
	uint64_t last_end = 0;
	size_t lines = 0;
	char *string;
	int r = -EINVAL;

	if (size > 0 && text[size - 1] != '\n')
		return -EINVAL;
	for (const char *p = text; p < end; p++)
		lines += *p == '\n';
	if (lines > max_lines)
		return -E2BIG;
	/* A path is shorter than its line; its NUL takes the place of the newline. */
	new.strings = malloc(size + 1);
	new.v = calloc(lines + 1, sizeof(*new.v));
	if (!new.strings || !new.v) {
		r = -ENOMEM;
		goto out;
	}
	string = new.strings;
	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		struct cursor c = {text, eol};
		struct map map = {0};
		bool exec = false;

		if (!parse_line(&c, &map, &exec) || map.start < last_end)
			goto out;
		last_end = map.end;
		if (exec) {
			map.path = string;
			string = copy_path(string, &c);
			new.v[new.n++] = map;
		}
		text = eol + 1;
	}
	*m = new;
	return 0;
out:
	maps_fini(&new);
	return r;
}

void maps_fini(struct maps *m)
{
	free(m->v);
	free(m->strings);
	m->v = NULL;
	m->strings = NULL;
	m->n = 0;
}

const struct map *maps_find(const struct maps *m, uint64_t addr)
{
	const size_t i = array_upper_bound(m->v, m->n, end, addr);

	return i < m->n && addr >= m->v[i].start ? &m->v[i] : NULL;
}
