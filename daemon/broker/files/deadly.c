#include "daemon/broker/files/deadly.h"

#include <string.h>

static struct deadly_file *find(struct deadly *d, uint32_t uid, uint32_t number)
{
	for (size_t i = 0; i < DEADLY_MAX; i++) {
		struct deadly_file *f = &d->v[i];

		if (f->deaths > 0 && f->uid == uid && f->number == number)
			return f;
	}
	return NULL;
}

static bool is_older(const struct deadly_file *f, const struct deadly_file *best)
{
	return best == NULL || f->at < best->at;
}

/* A free place, or the oldest one's: the user's if he has too many. */
static struct deadly_file *make_place(struct deadly *d, uint32_t uid)
{
	struct deadly_file *free = NULL, *oldest = NULL, *own = NULL;
	size_t n_own = 0;

	for (size_t i = 0; i < DEADLY_MAX; i++) {
		struct deadly_file *f = &d->v[i];

		if (f->deaths == 0) {
			free = f;
			continue;
		}
		if (is_older(f, oldest))
			oldest = f;
		if (f->uid != uid)
			continue;
		n_own++;
		if (is_older(f, own))
			own = f;
	}
	if (n_own >= DEADLY_OF_USER)
		return own;
	return free != NULL ? free : oldest;
}

bool deadly_count(struct deadly *d, uint32_t uid, uint32_t number)
{
	struct deadly_file *f = find(d, uid, number);

	if (f == NULL) {
		f = make_place(d, uid);
		*f = (struct deadly_file){.uid = uid, .number = number};
	}
	f->at = ++d->deaths;
	return ++f->deaths == DEADLY_DEATHS;
}

bool deadly_is_left_out(struct deadly *d, uint32_t uid, uint32_t number,
			const struct file_shown *file)
{
	struct deadly_file *f = find(d, uid, number);

	if (f == NULL)
		return false;
	f->file = *file;
	return f->deaths >= DEADLY_DEATHS;
}

/* A number that never went with a file is a lie, and no file is left out. */
static bool is_named(const struct deadly_file *f)
{
	return f->deaths >= DEADLY_DEATHS && f->file.name[0] != '\0';
}

const struct deadly_file *deadly_next(const struct deadly *d, const struct deadly_file *f)
{
	size_t i = f == NULL ? 0 : (size_t)(f - d->v) + 1;

	while (d != NULL && i < DEADLY_MAX && !is_named(&d->v[i]))
		i++;
	return d != NULL && i < DEADLY_MAX ? &d->v[i] : NULL;
}

size_t deadly_left_out(const struct deadly *d)
{
	size_t n = 0;

	for (const struct deadly_file *f = deadly_next(d, NULL); f != NULL; f = deadly_next(d, f))
		n++;
	return n;
}

void deadly_clear(struct deadly *d)
{
	memset(d, 0, sizeof(*d));
}
