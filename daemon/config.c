#include "daemon/config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config_keys.h"
#include "daemon/spool_dir.h"
#include "lib/base/buf.h"

#define TARGETS_D "targets.d"
#define SUFFIX	  ".conf"

void config_init(struct config *c)
{
	*c = (struct config){
		.client_reports = true,
		.shutdown_timeout_s = 2, /* as Sentry's SDKs */
		.rate_hz = 101,
		.chunk_seconds = 60,
		.cpu_budget = 5,
		.max_frames = 512,
		.symbols = UNWIND_SYMBOLS_NAMES,
		.spool_max_bytes = SPOOL_BYTES_DEFAULT,
		.spool_max_chunks = SPOOL_COUNT_DEFAULT,
		.spool_max_age_s = SPOOL_AGE_DEFAULT_S,
		.platform = "rust",
		.implicit = {.uid = CONFIG_UID_ANY},
	};
}

void config_fini(struct config *c)
{
	if (c == NULL)
		return;
	if (c->targets != NULL)
		explicit_bzero(c->targets, c->n_targets * sizeof(*c->targets));
	free(c->targets);
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i]);
	explicit_bzero(c, sizeof(*c));
}

/* A regular file of a size that a configuration may have. */
static int read_file(int at, const char *path, struct buf *ret, struct stat *st)
{
	int fd, r;

	/* Not to wait for a pipe's writer. */
	fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = fstat(fd, st) < 0 ? -errno : 0;
	if (r == 0 && !S_ISREG(st->st_mode))
		r = S_ISDIR(st->st_mode) ? -EISDIR : -ENXIO;
	if (r == 0)
		r = buf_read_fd(ret, fd);
	close_fd(&fd);
	return r;
}

static void fault_of_file(struct config *c, const char *name,
			  struct config_faults *faults, const char *what)
{
	const struct config_origin at = {.file = config_add_file(c, name)};

	config_fault_add(faults, c, &at, false, "%s", what);
}

static void load_file(struct config *c, int at, const char *path,
		      const char *shown, enum config_place place,
		      struct config_faults *faults)
{
	struct config_text text = {.name = shown, .place = place};
	struct stat st;
	struct buf b;
	int r;

	buf_init(&b, CONFIG_FILE_BYTES_MAX);
	r = read_file(at, path, &b, &st);
	if (r < 0) {
		fault_of_file(c, shown, faults,
			      r == -ENXIO ? "not a regular file"
					  : strerror(-r));
	} else {
		text.bytes = buf_string(&b);
		text.size = b.len;
		text.mode = st.st_mode;
		text.uid = st.st_uid;
		config_read_text(c, &text, faults);
	}
	if (b.data != NULL)
		explicit_bzero(b.data, b.len);
	buf_fini(&b);
}

static int is_conf(const struct dirent *entry)
{
	const size_t suffix = strlen(SUFFIX);
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > suffix &&
	       strcmp(entry->d_name + n - suffix, SUFFIX) == 0;
}

/* By bytes, whatever language the operator speaks. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_targets_d(struct config *c, const char *path,
			   struct config_faults *faults)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash == NULL ? 0 : (size_t)(slash + 1 - path);
	char dir[PATH_MAX], shown[PATH_MAX + NAME_MAX + 2];
	struct dirent **v = NULL;
	int found;

	if ((size_t)snprintf(dir, sizeof(dir), "%.*s" TARGETS_D, (int)n,
			     path) >= sizeof(dir))
		return;
	found = scandir(dir, &v, is_conf, by_name);
	if (found < 0 && errno != ENOENT)
		fault_of_file(c, dir, faults, strerror(errno));
	for (int i = 0; i < found; i++) {
		(void)snprintf(shown, sizeof(shown), "%s/%s", dir,
			       v[i]->d_name);
		if (i < CONFIG_FILES_MAX)
			load_file(c, AT_FDCWD, shown, shown, CONFIG_TARGETS_D,
				  faults);
		else if (i == CONFIG_FILES_MAX)
			fault_of_file(c, dir, faults, "too many files");
		free(v[i]);
	}
	free(v);
}

int config_load(const char *path, struct config *ret,
		struct config_faults *faults)
{
	size_t before = faults->n_errors;

	config_init(ret);
	load_file(ret, AT_FDCWD, path, path, CONFIG_MAIN, faults);
	load_targets_d(ret, path, faults);
	return faults->n_errors != before ? -EINVAL : 0;
}

struct target_config *config_target(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_targets; i++)
		if (strcmp(c->targets[i].name, name) == 0)
			return &c->targets[i];
	return NULL;
}

/* Targets: their name is not compared, who asks has found them by it. */
bool target_config_equal(const struct target_config *a,
			 const struct target_config *b)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (config_keys[i].section == SECTION_TARGET &&
		    !config_value_equal(&config_keys[i], a, b))
			return false;
	return true;
}

void config_changed_keys(const struct config *old, const struct config *new,
			 config_key_fn fn, void *ctx)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (!key->is_taken && !config_value_equal(key, old, new))
			fn(ctx, config_section_name(key->section), key->name);
	}
}
