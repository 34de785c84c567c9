#include "daemon/config/subuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/config/accounts.h"
#include "lib/base/array.h"
#include "lib/base/digits.h"

/* UID_MIN if /etc/login.defs does not set it. */
#define UID_MIN_DEFAULT 1000

/*
 * podman gives this name, usually without an account, the uids of root's containers
 * (podman-run(1), --userns=auto).
 */
#define ROOTS_CONTAINERS "containers"

#define LINE_MAX_BYTES 512

void subuid_init(struct subuid *s, const char *path, const char *login_defs)
{
	*s = (struct subuid){.path = path, .login_defs = login_defs};
}

void subuid_fini(struct subuid *s)
{
	free(s->ranges);
	s->ranges = NULL;
	s->n = s->size = 0;
}

static uint32_t read_uid_min(const char *login_defs)
{
	FILE *file = fopen(login_defs, "re");
	uint32_t found = UID_MIN_DEFAULT;
	char line[LINE_MAX_BYTES];
	unsigned int n;

	if (file == NULL)
		return found;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, " UID_MIN %u", &n) == 1)
			found = n;
	(void)fclose(file);
	return found;
}

/* Parses a line of subuid(5), NAME:FIRST:NUMBER. Returns false if it is none. */
static bool parse(char *line, struct subuid_range *ret)
{
	char *name = strsep(&line, ":"), *first = strsep(&line, ":");
	uint64_t from, n;

	if (first == NULL || line == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	if (!digits_number(first, 0, UINT32_MAX, &from) || !digits_number(line, 1, UINT32_MAX, &n))
		return false;
	*ret = (struct subuid_range){.first = (uint32_t)from, .n = (uint32_t)n};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	return true;
}

static int add_range(struct subuid *s, const struct subuid_range *range)
{
	int r = s->n == SUBUID_RANGES_MAX ? -ENOSPC : array_grow(s->ranges, s->n, s->size);

	if (r == 0)
		s->ranges[s->n++] = *range;
	return r;
}

static void read_ranges(struct subuid *s)
{
	FILE *file = fopen(s->path, "re");
	struct subuid_range range;
	char line[LINE_MAX_BYTES];
	int r = 0;

	subuid_fini(s);
	s->uid_min = read_uid_min(s->login_defs);
	if (file == NULL)
		return;
	while (r == 0 && fgets(line, sizeof(line), file) != NULL)
		if (parse(line, &range))
			r = add_range(s, &range);
	(void)fclose(file);
	if (r < 0)
		log_warning("%s: only the first %zu ranges count (%s): limits per user do not hold "
			    "for the uids of the others",
			    s->path, s->n, strerror(-r));
}

/* Returns the first uid of the first range of this name. */
static uint32_t first_of(const struct subuid *s, const char *name)
{
	size_t k = 0;

	while (strcmp(s->ranges[k].name, name) != 0)
		k++;
	return s->ranges[k].first;
}

/*
 * Finds the owner of a range. Called when one of the uids of the range appears: to do this for all
 * ranges would take long on a large host.
 */
static void resolve(const struct subuid *s, struct subuid_range *range)
{
	uint32_t gid;
	uint64_t uid;

	range->is_resolved = true;
	if (account_find(range->name, &range->owner, &gid)) {
		range->is_system = range->owner < s->uid_min;
	} else if (digits_number(range->name, 0, UINT32_MAX, &uid)) {
		range->owner = (uint32_t)uid;
		range->is_system = range->owner < s->uid_min;
	} else {
		range->owner = first_of(s, range->name);
		range->is_system = strcmp(range->name, ROOTS_CONTAINERS) == 0;
	}
}

uint32_t subuid_owner(struct subuid *s, uint32_t uid)
{
	struct file_identity now = {0};
	struct stat st;

	if (stat(s->path, &st) == 0)
		now = file_identity_of(&st);
	if (!file_identity_equal(&now, &s->seen)) {
		read_ranges(s);
		s->seen = now;
	}
	for (size_t k = 0; k < s->n; k++) {
		struct subuid_range *range = &s->ranges[k];

		if (uid < range->first || uid - range->first >= range->n)
			continue;
		if (!range->is_resolved)
			resolve(s, range);
		return range->is_system ? uid : range->owner;
	}
	return uid;
}
