#include "lib/unwind/space/maps.h"

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

static bool take_permissions(struct cursor *c, bool *ret_read, bool *ret_exec)
{
	const char *p = c->p;

	if (c->end - p < 4 || (p[0] != 'r' && p[0] != '-') || (p[1] != 'w' && p[1] != '-') ||
	    (p[2] != 'x' && p[2] != '-') || (p[3] != 'p' && p[3] != 's'))
		return false;
	*ret_read = p[0] == 'r';
	*ret_exec = p[2] == 'x';
	c->p += 4;
	return true;
}

/* Parses a line without its newline. Leaves c at the path. */
static bool parse_line(struct cursor *c, struct map *ret, bool *ret_read)
{
	uint64_t major;
	uint64_t minor;

	if (!take_number(c, 16, &ret->start) || !take_char(c, '-') ||
	    !take_number(c, 16, &ret->end) || !take_char(c, ' ') ||
	    !take_permissions(c, ret_read, &ret->exec) || !take_char(c, ' ') ||
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

/* Returns true if map can be where a segment of the file was that is mapped at file, above map. */
static bool may_belong(const struct map *map, const struct map *file)
{
	const uint64_t distance = file->start - map->start;

	return (map->device != file->device || map->inode != file->inode) && file->offset > 0 &&
	       distance - min_u64(distance, MAPS_SPREAD_MAX) <= file->offset;
}

/* The executable mappings above which the next mapping of a file has not come yet. */
struct pending {
	size_t first; /* in maps.v; no mapping without the permission to execute has come */
	size_t fresh; /* no mapping at all */
	size_t cap;   /* of maps.files */
};

/*
 * Notes file, the next mapping of a file, for the pending mappings. Sets *ret to true if it was
 * kept for one of them. Returns 0 or -ENOMEM.
 */
static int note_above(struct maps *m, struct pending *p, const struct map *file, bool *ret)
{
	size_t i = file->exec ? p->fresh : p->first;

	*ret = false;
	for (; i < m->n; i++) {
		if (!may_belong(&m->v[i], file))
			continue;
		if (!*ret) {
			if (array_grow(m->files, m->n_files, p->cap) < 0)
				return -ENOMEM;
			m->files[m->n_files++] = *file;
			*ret = true;
		}
		m->v[i].above = (uint32_t)m->n_files;
	}
	p->fresh = m->n;
	if (!file->exec)
		p->first = m->n;
	return 0;
}

int maps_parse(struct maps *m, const char *text, size_t size, size_t max_lines)
{
	const char *end = text + size;
	struct maps new = {.v = NULL};
	uint64_t last_end = 0;
	size_t lines = 0;
	struct pending pending = {0};
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
		struct map map = {.path = string};
		bool read = false, kept = false;

		if (!parse_line(&c, &map, &read) || map.start < last_end)
			goto out;
		last_end = map.end;
		/* Between two segments the dynamic linker leaves parts without any permission. */
		if (map.inode != 0 && read) {
			r = note_above(&new, &pending, &map, &kept);
			if (r)
				goto out;
			r = -EINVAL;
		}
		if (map.exec || kept)
			string = copy_path(string, &c);
		if (map.exec)
			new.v[new.n++] = map;
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
	free(m->files);
	free(m->strings);
	*m = (struct maps){.v = NULL};
}

const struct map *maps_find(const struct maps *m, uint64_t addr)
{
	const size_t i = array_upper_bound(m->v, m->n, end, addr);

	return i < m->n && addr >= m->v[i].start ? &m->v[i] : NULL;
}

const struct map *maps_above(const struct maps *m, const struct map *map)
{
	return map->above > 0 ? &m->files[map->above - 1] : NULL;
}
