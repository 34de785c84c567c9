#include "daemon/config/config_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/common/option_fault.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "lib/base/buf.h"

#define TARGETS_D "targets.d"
#define SUFFIX	  ".conf"
#define ENV	  "env"

_Static_assert(CONFIG_FILES_MAX == 256 && CONFIG_FILE_BYTES_MAX == 1u << 20,
	       "faults contain these numbers");

struct reader {
	struct config *config;
	struct config_faults *faults;
	const struct config_text *text;
	uint32_t file; /* from config_add_file(), for faults */
	size_t at;
	unsigned int number; /* of the line */
	enum config_section section;
	void *base; /* the struct that gets the values; NULL: unknown section */
	uint64_t *given;
	struct config_origin *origins;
	bool was_reported; /* a fault is reported already: the keys have no section, or an unknown
			      one */
};

#define fault(r, ...) add_fault((r), false, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static void add_fault(const struct reader *r, bool is_warning,
							    const char *format, ...)
{
	const struct config_origin at = {.file = r->file, .line = r->number};
	char text[CONFIG_PROBLEM_MAX + 2 * CONFIG_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	config_fault_add(r->faults, r->config, &at, is_warning, "%s", text);
}

/* To be called for a line whose key is not known: it may be a rule. */
static void note_unread(const struct reader *r)
{
	if (r->section == SECTION_TARGET)
		((struct section_config *)r->base)->has_unread_line = true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool has_control(const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
			return true;
	return false;
}

/* Finds the next line, without the blanks around it. Returns false at the end. */
static bool next_line(struct reader *r, const char **ret, size_t *ret_n)
{
	const struct config_text *t = r->text;
	const char *line = t->bytes + r->at, *end;
	size_t n = t->size - r->at;

	if (n == 0)
		return false;
	end = memchr(line, '\n', n);
	if (end != NULL)
		n = (size_t)(end - line);
	r->at += n + (end != NULL);
	r->number++;
	if (r->number == 1 && n >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
		line += 3;
		n -= 3;
	}
	if (n > 0 && line[n - 1] == '\r')
		n--;
	while (n > 0 && is_blank(*line)) {
		line++;
		n--;
	}
	while (n > 0 && is_blank(line[n - 1]))
		n--;
	*ret = line;
	*ret_n = n;
	return true;
}

/* Copies the NAME of [target "NAME"]. Returns -1 if heading is not of this form. */
static int section_name(const char *heading, char ret[CONFIG_NAME_MAX])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-@";
	const char *at = heading + strlen("target");
	size_t n;

	while (is_blank(*at))
		at++;
	if (*at++ != '"')
		return -1;
	n = strspn(at, allowed);
	if (n == 0 || n >= CONFIG_NAME_MAX || strcmp(at + n, "\"") != 0)
		return -1;
	memcpy(ret, at, n);
	ret[n] = '\0';
	return 0;
}

static void begin_target_section(struct reader *r, const char *heading)
{
	struct config *c = r->config;
	char name[CONFIG_NAME_MAX];
	struct section_config *section;

	if (section_name(heading, name) < 0) {
		fault(r, "a target is [target \"NAME\"]; NAME has 1 to %d letters, digits, . _ - @",
		      CONFIG_NAME_MAX - 1);
		return;
	}
	if (config_section(c, name) != NULL) {
		fault(r, "[target \"%s\"] is defined twice", name);
		return;
	}
	if (c->n_sections == CONFIG_SECTIONS_MAX) {
		fault(r, "more than %d targets", CONFIG_SECTIONS_MAX);
		return;
	}
	section = reallocarray(c->sections, c->n_sections + 1, sizeof(*section));
	if (section == NULL) {
		fault(r, "no memory for [target \"%s\"]", name);
		return;
	}
	c->sections = section;
	section += c->n_sections++;
	*section = (struct section_config){.uid = CONFIG_UID_ANY};
	memcpy(section->name, name, sizeof(name));
	section->origin = (struct config_origin){.file = r->file, .line = r->number};
	r->section = SECTION_TARGET;
	r->base = section;
	r->given = &section->given;
	r->origins = section->origins;
}

/* heading: the line after its "[". */
static void begin_section(struct reader *r, char *heading)
{
	char *after = strchr(heading, ']');

	r->section = SECTION_NONE;
	r->base = NULL;
	r->was_reported = true; /* add no faults for its keys */
	if (after != NULL) {
		*after++ = '\0';
		after += strspn(after, " \t");
	}
	if (after == NULL || (*after != '\0' && *after != '#' && *after != ';')) {
		fault(r, "a section is [NAME], with nothing after it");
		return;
	}
	if (strncmp(heading, "target", strlen("target")) == 0) {
		begin_target_section(r, heading);
		return;
	}
	if (strcmp(heading, "sentry") != 0 && strcmp(heading, "profiler") != 0) {
		fault(r,
		      "unknown section [%s]: the sections are [sentry], [profiler] "
		      "and [target \"NAME\"]",
		      heading);
		return;
	}
	if (r->text->place == CONFIG_TARGETS_D && *heading == 'p') {
		fault(r, "[profiler] belongs in the main file");
		return;
	}
	r->base = r->config;
	r->section = *heading == 's' ? SECTION_SENTRY : SECTION_PROFILER;
	r->given = *heading == 's' ? &r->config->given_sentry : &r->config->given_profiler;
	r->origins = r->config->origins;
}

/* The key may be misspelt, or of another version of sentry-profd. */
static void unknown_key(struct reader *r, const char *name)
{
	enum config_section elsewhere = config_key_section(name);
	const char *names[CONFIG_KEYS_MAX], *nearest;
	char text[CONFIG_DEFECT_MAX] = "";
	struct section_config *section = r->base;
	size_t n = 0;

	for (size_t i = 0; i < config_n_keys; i++)
		if (config_keys[i].section == r->section)
			names[n++] = config_keys[i].name;
	nearest = option_nearest(name, names, n);
	if (strcmp(name, "metrics_listen") == 0)
		(void)snprintf(text, sizeof(text),
			       "metrics_listen is no key any more: sentry-profd-metrics --listen "
			       "ADDR:PORT serves the metrics, and sentry-profctl metrics prints "
			       "them");
	else if (elsewhere != SECTION_NONE)
		(void)snprintf(text, sizeof(text), "%s is a key of %s", name,
			       config_section_name(elsewhere));
	else if (nearest != NULL)
		(void)snprintf(text, sizeof(text), "unknown key %s: did you mean %s?", name,
			       nearest);
	else
		(void)snprintf(text, sizeof(text), "unknown key %s", name);
	add_fault(r, !r->faults->is_check, "%s", text);
	note_unread(r);
	if (r->section != SECTION_TARGET || section->is_off)
		return;
	section->is_off = true;
	memcpy(section->defect, text, sizeof(text));
}

/* Returns true if the section has set the DSN already, by dsn or dsn_file. */
static bool is_dsn_twice(const struct reader *r, const struct config_key *key)
{
	const struct config_key *other;

	if (key->type != KEY_DSN && key->type != KEY_DSN_FILE)
		return false;
	other = config_key_find(r->section, key->type == KEY_DSN ? "dsn_file" : "dsn");
	return (*r->given & config_key_bit(other)) != 0;
}

/*
 * Returns true if value is a relative path, which has no meaning here because the daemon's working
 * directory is arbitrary.
 */
static bool is_relative(const struct config_key *key, const char *value)
{
	return value[0] != '/' && (key->type == KEY_PATH || key->type == KEY_DSN_FILE ||
				   (key->type == KEY_SPOOL && strcmp(value, "none") != 0));
}

static void set_value(struct reader *r, const struct config_key *key, const char *value)
{
	char problem[CONFIG_PROBLEM_MAX];

	if ((*r->given & config_key_bit(key)) != 0 && key->type != KEY_ENV) {
		fault(r, "%s is given twice", key->name);
		return;
	}
	if (is_dsn_twice(r, key)) {
		fault(r, "both dsn and dsn_file are given");
		return;
	}
	*r->given |= config_key_bit(key);
	r->origins[key - config_keys] = (struct config_origin){.file = r->file, .line = r->number};
	if (is_relative(key, value)) {
		if (config_value_may_be_secret(key, value))
			fault(r, "%s: not an absolute path", key->name);
		else
			fault(r, "%s: not an absolute path: '%s'", key->name, value);
		return;
	}
	if (config_value_parse(key, value, r->base, problem) < 0) {
		/* The problem of a dsn_file contains its path. */
		if (key->type == KEY_DSN_FILE || config_value_may_be_secret(key, value))
			fault(r, "%s: %s", key->name, problem);
		else
			fault(r, "%s: %s: '%s'", key->name, problem, value);
		return;
	}
	if (key->type == KEY_IGNORED)
		add_fault(r, true,
			  "%s has no effect on continuous profiling: use "
			  "profile_session_sample_rate",
			  key->name);
}

static void handle_pair(struct reader *r, const char *name, const char *value)
{
	const struct config_key *key;

	if (r->base == NULL) {
		if (!r->was_reported)
			fault(r, "%s is not in any section", name);
		return;
	}
	key = config_key_find(r->section, name);
	if (key == NULL)
		unknown_key(r, name);
	else
		set_value(r, key, value);
}

static void cut_comment(char *line)
{
	while (*line != '\0' && !(is_blank(line[0]) && line[1] == ';'))
		line++;
	*line = '\0';
}

static char *strip(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n > 0 && is_blank(text[n - 1]))
		text[--n] = '\0';
	return text;
}

/*
 * Returns NAME=VALUE, the value of the key env NAME. name and value are parts of one line, in this
 * order; what is between them is overwritten.
 */
static const char *env_value(const char *name, char *value)
{
	const size_t n = strlen(name);

	*--value = '=';
	return memmove(value - n, name, n);
}

/* line: without the blanks around it, neither empty nor a comment. */
static void read_line(struct reader *r, char *line)
{
	char *name, *value;

	if (*line == '[') {
		begin_section(r, line + 1);
		return;
	}
	cut_comment(line);
	value = strpbrk(line, "=:");
	if (value == NULL) {
		note_unread(r);
		fault(r, "is neither [section], \"key = value\" nor # comment");
		return;
	}
	*value++ = '\0';
	name = strip(line);
	value = strip(value);
	if (strncmp(name, ENV, strlen(ENV)) == 0 && is_blank(name[strlen(ENV)]))
		handle_pair(r, CONFIG_KEY_ENV, env_value(strip(name + strlen(ENV)), value));
	else
		handle_pair(r, name, value);
}

static void read_lines(struct reader *r)
{
	char copy[CONFIG_LINE_MAX + 1];
	const char *line;
	size_t n;

	while (next_line(r, &line, &n)) {
		if (n == 0 || *line == '#' || *line == ';')
			continue;
		if (has_control(line, n)) {
			note_unread(r);
			fault(r, "contains control characters");
			continue;
		}
		if (n > CONFIG_LINE_MAX) {
			note_unread(r);
			fault(r, "is longer than %u bytes", CONFIG_LINE_MAX);
			continue;
		}
		memcpy(copy, line, n);
		copy[n] = '\0';
		read_line(r, copy);
		explicit_bzero(copy, n); /* a DSN */
	}
}

/* Returns true if this file contains a DSN. The file's mode is then checked. */
static bool holds_dsn(const struct config *c, size_t first_section, uint64_t sentry_before)
{
	const uint64_t of_sentry = config_key_bit(config_key_find(SECTION_SENTRY, "dsn"));
	const uint64_t of_target = config_key_bit(config_key_find(SECTION_TARGET, "dsn"));

	if ((c->given_sentry & ~sentry_before & of_sentry) != 0 && c->dsn[0] != '\0')
		return true;
	for (size_t i = first_section; i < c->n_sections; i++)
		if ((c->sections[i].given & of_target) != 0 && c->sections[i].dsn[0] != '\0')
			return true;
	return false;
}

void config_read_text(struct config *c, const struct config_text *text,
		      struct config_faults *faults)
{
	struct reader r = {.config = c, .faults = faults, .text = text};
	const size_t first_section = c->n_sections;
	const uint64_t sentry_before = c->given_sentry;
	char problem[CONFIG_PROBLEM_MAX];

	r.file = config_add_file(c, text->name);
	read_lines(&r);
	if (config_check_mode(text->name, text->mode, text->uid,
			      holds_dsn(c, first_section, sentry_before), problem) < 0) {
		r.number = 0; /* the file as a whole */
		fault(&r, "%s", problem);
	}
}

/* Reads a regular file, up to the maximum of ret. */
static int read_file(const char *path, struct buf *ret, struct stat *st)
{
	int fd, r;

	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	r = fstat(fd, st) < 0 ? -errno : 0;
	if (r == 0 && !S_ISREG(st->st_mode))
		r = S_ISDIR(st->st_mode) ? -EISDIR : -ENXIO;
	if (r == 0)
		r = buf_reserve(ret); /* a DSN */
	if (r == 0)
		r = buf_read_fd(ret, fd);
	close_fd(&fd);
	return r;
}

static void add_file_fault(struct config *c, const char *name, struct config_faults *faults,
			   const char *what)
{
	const struct config_origin at = {.file = config_add_file(c, name)};

	config_fault_add(faults, c, &at, false, "%s", what);
}

static void load_file(struct config *c, const char *path, enum config_place place,
		      struct config_faults *faults)
{
	struct config_text text = {.name = path, .place = place};
	struct stat st = {0};
	struct buf b;
	int r;

	buf_init(&b, CONFIG_FILE_BYTES_MAX);
	r = read_file(path, &b, &st);
	if (r < 0) {
		add_file_fault(c, path, faults,
			       r == -ENXIO   ? "not a regular file"
			       : r == -E2BIG ? "larger than 1 MiB"
					     : strerror(-r));
	} else {
		text.bytes = buf_string(&b);
		text.size = b.len;
		text.mode = st.st_mode;
		text.uid = st.st_uid;
		config_read_text(c, &text, faults);
	}
	buf_wipe(&b);
}

static int is_conf(const struct dirent *entry)
{
	const size_t suffix = strlen(SUFFIX);
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > suffix &&
	       strcmp(entry->d_name + n - suffix, SUFFIX) == 0;
}

/* Compares the names by bytes, so the order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_targets_d(struct config *c, const char *path, struct config_faults *faults)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash == NULL ? 0 : (size_t)(slash + 1 - path);
	char dir[PATH_MAX], shown[PATH_MAX + NAME_MAX + 2];
	struct dirent **v = NULL;
	int found;

	if ((size_t)snprintf(dir, sizeof(dir), "%.*s" TARGETS_D, (int)n, path) >= sizeof(dir))
		return;
	found = scandir(dir, &v, is_conf, by_name);
	if (found < 0 && errno != ENOENT)
		add_file_fault(c, dir, faults, strerror(errno));
	for (int i = 0; i < found; i++) {
		(void)snprintf(shown, sizeof(shown), "%s/%s", dir, v[i]->d_name);
		if (i < CONFIG_FILES_MAX)
			load_file(c, shown, CONFIG_TARGETS_D, faults);
		else if (i == CONFIG_FILES_MAX)
			add_file_fault(c, dir, faults, "more than 256 files");
		free(v[i]);
	}
	free(v);
}

int config_load(const char *path, struct config *ret, struct config_faults *faults)
{
	size_t before = faults->n_errors;

	config_init(ret);
	load_file(ret, path, CONFIG_MAIN, faults);
	load_targets_d(ret, path, faults);
	return faults->n_errors != before ? -EINVAL : 0;
}
