#include "daemon/broker/files/quarantine.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>

#include "daemon/msg/page.h"

void quarantine_init(struct quarantine *q)
{
	if (getrandom(q->key, sizeof(q->key), 0) < 0)
		abort();
}

int quarantine_page_new(const uint32_t **page, int *ret_fd)
{
	const void *made;
	int r = page_new("reading", sizeof(**page), &made, ret_fd);

	if (r < 0)
		return r;
	quarantine_page_free(page);
	*page = made;
	return 0;
}

void quarantine_page_free(const uint32_t **page)
{
	page_free(*page, sizeof(**page));
	*page = NULL;
}

static struct quarantine_file *find_entry(struct quarantine_table *d, const struct owner_key *owner,
					  uint32_t number)
{
	for (size_t i = 0; i < QUARANTINE_MAX; i++) {
		struct quarantine_file *f = &d->v[i];

		if (f->deaths > 0 && owner_key_equal(&f->owner, owner) && f->number == number)
			return f;
	}
	return NULL;
}

static bool is_older(const struct quarantine_file *f, const struct quarantine_file *best)
{
	return best == NULL || f->last_death < best->last_death;
}

/*
 * Returns a free entry, or the oldest: of the user, if it has QUARANTINE_OF_USER; else of all. A
 * user can have as many keys as processes.
 */
static struct quarantine_file *find_place(struct quarantine_table *d, const struct owner_key *owner)
{
	struct quarantine_file *free = NULL, *oldest = NULL, *own = NULL;
	size_t n_own = 0;

	for (size_t i = 0; i < QUARANTINE_MAX; i++) {
		struct quarantine_file *f = &d->v[i];

		if (f->deaths == 0) {
			free = f;
			continue;
		}
		if (is_older(f, oldest))
			oldest = f;
		if (f->owner.uid != owner->uid)
			continue;
		n_own++;
		if (is_older(f, own))
			own = f;
	}
	if (n_own >= QUARANTINE_OF_USER)
		return own;
	return free != NULL ? free : oldest;
}

bool quarantine_count_death(struct quarantine *q, const struct owner_key *owner, uint32_t number)
{
	struct quarantine_file *f;

	if (q->table == NULL)
		q->table = calloc(1, sizeof(*q->table));
	if (q->table == NULL)
		return false;
	f = find_entry(q->table, owner, number);
	if (f == NULL) {
		f = find_place(q->table, owner);
		*f = (struct quarantine_file){.owner = *owner, .number = number};
	}
	f->last_death = ++q->table->deaths;
	return ++f->deaths == QUARANTINE_DEATHS;
}

bool quarantine_has(struct quarantine *q, const struct owner_key *owner, uint32_t number,
		    const struct file_label *file)
{
	struct quarantine_file *f = q->table == NULL ? NULL : find_entry(q->table, owner, number);

	if (f == NULL)
		return false;
	f->file = *file;
	return f->deaths >= QUARANTINE_DEATHS;
}

/*
 * Returns true if the entry is a quarantined file. A number that no file had was made up by the
 * process and quarantines nothing.
 */
static bool is_named(const struct quarantine_file *f)
{
	return f->deaths >= QUARANTINE_DEATHS && f->file.name[0] != '\0';
}

const struct quarantine_file *quarantine_next(const struct quarantine *q,
					      const struct quarantine_file *f)
{
	const struct quarantine_table *t = q->table;
	size_t i;

	if (t == NULL)
		return NULL;
	i = f == NULL ? 0 : (size_t)(f - t->v) + 1;
	while (i < QUARANTINE_MAX && !is_named(&t->v[i]))
		i++;
	return i < QUARANTINE_MAX ? &t->v[i] : NULL;
}

size_t quarantine_count_files(const struct quarantine *q)
{
	const struct quarantine_file *f = NULL;
	size_t n = 0;

	while ((f = quarantine_next(q, f)) != NULL)
		n++;
	return n;
}

void quarantine_clear(struct quarantine *q)
{
	free(q->table);
	q->table = NULL;
}

/*
 * Returns true if the process ended because of what it read: by a crash, by the end of its time
 * (SIGXCPU, daemon/unwind/resource_limits.h) or of its memory, at which libraries call exit(3). Not
 * by SIGKILL or another signal of other processes: the kernel for want of memory, an administrator,
 * or the broker. The status alone decides: a process that broke a rule and crashed before the
 * broker killed it has crashed.
 */
static bool is_own_fault(int status)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS, SIGXCPU};

	if (WIFEXITED(status))
		return WEXITSTATUS(status) != 0;
	for (size_t i = 0; i < array_size(signals); i++)
		if (WIFSIGNALED(status) && WTERMSIG(status) == signals[i])
			return true;
	return false;
}

const struct quarantine_file *quarantine_unwind_died(struct quarantine *q,
						     const struct owner_key *owner,
						     const uint32_t *page, int status)
{
	const struct quarantine_file *f = NULL;
	uint32_t number;

	if (page == NULL || !is_own_fault(status))
		return NULL;
	number = __atomic_load_n(page, __ATOMIC_RELAXED);
	if (number == 0 || !quarantine_count_death(q, owner, number))
		return NULL;
	while ((f = quarantine_next(q, f)) != NULL)
		if (owner_key_equal(&f->owner, owner) && f->number == number)
			return f;
	return NULL;
}

/* Only these kinds are compiled files; others are text and have no number. */
static bool is_image(const struct msg_file_request *request)
{
	return request->kind == FILE_KIND_IMAGE || request->kind == FILE_KIND_CODE ||
	       request->kind == FILE_KIND_DEBUG || request->kind == FILE_KIND_DEBUG_LINK;
}

int quarantine_check_file(struct quarantine *q, const struct owner_key *owner,
			  const struct msg_file_request *request, const struct file_label *file,
			  uint32_t *ret_number)
{
	uint32_t number = 0;

	if (is_image(request))
		number = (uint32_t)siphash(q->key, &file->identity, sizeof(file->identity));
	if (number != 0 && quarantine_has(q, owner, number, file))
		return -EACCES;
	*ret_number = number;
	return 0;
}
