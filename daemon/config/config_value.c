#include "daemon/config/config_value.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/accounts.h"
#include "daemon/process/process.h"
#include "daemon/process/process_facts.h"
#include "lib/base/digits.h"
#include "proto/dsn.h"
#include "proto/profile.h"

/* Sentry takes 200 characters, and no control characters. */
#define TEXT_BYTES_MAX 200

/* A pointer to the field of key in the struct base. The type follows from the key's type. */
#define FIELD(type, key, base) ((type *)(void *)((char *)(base) + (key)->offset))

__attribute__((format(printf, 2, 3))) static int refuse(char problem[CONFIG_PROBLEM_MAX],
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(problem, CONFIG_PROBLEM_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

/* The number of bytes of the shortest text that the pattern matches. */
static size_t shortest_match(const char *pattern)
{
	size_t n = 0;

	for (; *pattern != '\0'; pattern++)
		n += *pattern != '*';
	return n;
}

static bool consists_of(const char *value, const char *allowed)
{
	return value[strspn(value, allowed)] == '\0';
}

static int check_rule(const struct config_key *key, const char *value, char *problem)
{
	const size_t n = strlen(value);

	/* In exe, neither "*" nor "?" matches a slash. */
	if (strcmp(key->name, "exe") == 0 && n > 0 &&
	    ((value[0] != '/' && strncmp(value, "**", 2) != 0) || value[n - 1] == '/'))
		return refuse(problem, "matches no file: a path begins with / or **, and does "
				       "not end with /");
	if (strcmp(key->name, "comm") == 0 && shortest_match(value) >= PROCESS_COMM_SIZE)
		return refuse(problem, "matches no name: the kernel cuts names off after 15 bytes");
	if (strcmp(key->name, "cgroup") == 0 && n > 0 && strchr("/*?", value[0]) == NULL)
		return refuse(problem, "matches no control group: a path begins with /");
	if (strcmp(key->name, "unit") == 0 && strchr(value, '/') != NULL)
		return refuse(problem,
			      "matches no unit: a name has no slash (use cgroup for a path)");
	if (strcmp(key->name, "container") == 0 &&
	    ((!consists_of(value, "0123456789abcdef-*?") &&
	      strncmp(value, PROCESS_FACTS_LXC, sizeof(PROCESS_FACTS_LXC) - 1) != 0) ||
	     shortest_match(value) >= PROCESS_FACTS_CONTAINER_SIZE))
		return refuse(problem, "matches no container: an id has the digits 0 to 9 and a to "
				       "f (or is " PROCESS_FACTS_LXC "NAME)");
	return 0;
}

/* "wall nor cpu", "none, names nor lines" */
static void join_words(const char *const *words, char *ret, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; words[i] != NULL && at < size; i++) {
		const char *between = words[i + 1] == NULL ? " nor " : ", ";
		int n = snprintf(ret + at, size - at, "%s%s", i > 0 ? between : "", words[i]);

		at += n > 0 ? (size_t)n : 0;
	}
}

/* Returns the index of value in words, or -EINVAL. */
static int find_word(const char *const *words, const char *value, char problem[CONFIG_PROBLEM_MAX])
{
	char all[64];

	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], value) == 0)
			return i;
	join_words(words, all, sizeof(all));
	return refuse(problem, "neither %s", all);
}

static int parse_text(const struct config_key *key, const char *value, void *base, char *problem)
{
	const size_t most = key->max != 0	    ? key->max
			    : key->type == KEY_TEXT ? TEXT_BYTES_MAX
						    : CONFIG_TEXT_MAX - 1;
	size_t n = strlen(value);

	if (n == 0)
		return refuse(problem, "empty");
	if (n > most)
		return refuse(problem, "longer than %zu bytes", most);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return refuse(problem, "contains control characters");
	if (key->type == KEY_TEXT && !profile_is_utf8(value))
		return refuse(problem, "not UTF-8");
	if (key->words != NULL && find_word(key->words, value, problem) < 0)
		return -EINVAL;
	memcpy(FIELD(char, key, base), value, n + 1);
	return 0;
}

/* Returns true if text, the field env, has the variable whose name and "=" take n bytes. */
static bool has_variable(const char *text, const char *name, size_t n)
{
	while (strncmp(text, name, n) != 0) {
		text += strcspn(text, "\n");
		if (*text++ == '\0')
			return false;
	}
	return true;
}

static int parse_env(const struct config_key *key, const char *value, void *base, char *problem)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_";
	char *field = FIELD(char, key, base);
	const size_t n = strspn(value, name), before = strlen(field);

	if (n == 0 || value[n] != '=' || (value[0] >= '0' && value[0] <= '9'))
		return refuse(problem, "the name of a variable has letters, digits and _");
	if (value[n + 1] == '\0')
		return refuse(problem, "empty");
	if (has_variable(field, value, n + 1))
		return refuse(problem, "given twice");
	if (before + strlen(value) + (before > 0) > key->max)
		return refuse(problem, "longer than %u bytes, with all env of the section",
			      key->max);
	(void)snprintf(field + before, key->max + 1 - before, "%s%s", before > 0 ? "\n" : "",
		       value);
	return 0;
}

static int parse_number(const struct config_key *key, const char *value, void *base, char *problem)
{
	uint64_t n;

	if (!digits_number(value, key->min, key->max, &n))
		return refuse(problem, "not a number from %u to %u", key->min, key->max);
	*FIELD(uint32_t, key, base) = (uint32_t)n;
	return 0;
}

static int parse_bytes(const struct config_key *key, const char *value, void *base, char *problem)
{
	static const char units[] = "KMG";
	const char *unit;
	unsigned long n;
	uint64_t bytes;
	char *end;

	errno = 0;
	n = strtoul(value, &end, 10);
	bytes = n;
	unit = *end != '\0' ? strchr(units, *end) : NULL;
	if (unit != NULL) {
		unsigned int shift = 10 * (unsigned int)(unit - units + 1);

		if (bytes > UINT64_MAX >> shift)
			errno = ERANGE;
		bytes <<= shift;
		end++;
	}
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || bytes < key->min)
		return refuse(problem, "not a number of bytes of at least %u, such as 300M",
			      key->min);
	*FIELD(uint64_t, key, base) = bytes;
	return 0;
}

/* Refuses 0x10, 1e3 and inf, which strtod(3) accepts. */
static bool read_decimal(const char *value, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(value, &end);
	return value[0] != '\0' && value[strspn(value, "0123456789.")] == '\0' && *end == '\0' &&
	       errno == 0 && isfinite(*ret);
}

static int parse_decimal(const struct config_key *key, const char *value, void *base, char *problem)
{
	double n;

	if (key->type == KEY_SECONDS) {
		if (!read_decimal(value, &n) || n <= 0 || n > key->max)
			return refuse(problem, "not a positive number of "
					       "seconds");
	} else if (!read_decimal(value, &n) || n > 1) {
		return refuse(problem, "not a number from 0.0 to 1.0");
	}
	if (key->type != KEY_IGNORED)
		*FIELD(double, key, base) = n;
	return 0;
}

static int parse_bool(const struct config_key *key, const char *value, void *base, char *problem)
{
	bool yes = strcmp(value, "yes") == 0 || strcmp(value, "true") == 0;

	if (!yes && strcmp(value, "no") != 0 && strcmp(value, "false") != 0)
		return refuse(problem, "neither yes nor no");
	*FIELD(bool, key, base) = yes;
	return 0;
}

static int parse_word(const struct config_key *key, const char *value, void *base, char *problem)
{
	const int place = find_word(key->words, value, problem);

	if (place < 0)
		return place;
	*FIELD(unsigned int, key, base) = (unsigned int)place;
	return 0;
}
_Static_assert(sizeof(enum profile_mode) == sizeof(unsigned int) &&
		       sizeof(enum unwind_symbols) == sizeof(unsigned int),
	       "an enum is written as an unsigned int");

static int parse_user(const struct config_key *key, const char *value, void *base, char *problem)
{
	struct section_config *section = base;
	uint32_t gid;
	uint64_t n;

	if (digits_number(value, 0, CONFIG_UID_ANY - 1, &n))
		section->uid = (uint32_t)n;
	else if (!account_find(value, &section->uid, &gid))
		return refuse(problem, "not a user in /etc/passwd (a number needs no entry there)");
	return parse_text(key, value, base, problem);
}

static int parse_dsn(const struct config_key *key, const char *value, void *base, char *problem)
{
	enum dsn_result result;
	struct dsn dsn;

	result = dsn_parse(&dsn, value);
	explicit_bzero(&dsn, sizeof(dsn));
	if (result != DSN_OK && result != DSN_EMPTY)
		return refuse(problem, "%s", dsn_result_text(result));
	/* The value fits, because dsn_parse() refuses a DSN of more than DSN_SIZE bytes. */
	(void)snprintf(FIELD(char, key, base), MSG_DSN_MAX, "%s", value);
	return 0;
}

/* Returns true if value is one of words: those of Sentry's SDKs for SENTRY_SPOTLIGHT. */
static bool is_word(const char *value, const char *const *words)
{
	while (*words != NULL && strcasecmp(value, *words) != 0)
		words++;
	return *words != NULL;
}

/* Blanks around the value are ignored. */
static int parse_spotlight(const struct config_key *key, const char *value, void *base,
			   char *problem)
{
	static const char *const on[] = {"true", "t", "yes", "y", "on", "1", NULL};
	static const char *const off[] = {"false", "f", "no", "n", "off", "0", NULL};
	static const char blanks[] = " \t\r\n";
	char text[CONFIG_TEXT_MAX];
	struct dsn url;
	size_t n;

	value += strspn(value, blanks);
	n = strlen(value);
	while (n > 0 && strchr(blanks, value[n - 1]) != NULL)
		n--;
	if (n >= sizeof(text))
		return refuse(problem, "longer than %zu bytes", sizeof(text) - 1);
	memcpy(text, value, n);
	text[n] = '\0';
	if (is_word(text, off))
		text[0] = '\0';
	else if (is_word(text, on))
		memcpy(text, CONFIG_SPOTLIGHT_ON, sizeof(CONFIG_SPOTLIGHT_ON));
	else if (dsn_parse_url(&url, text) != DSN_OK)
		return refuse(problem, "neither yes, no nor a URL "
				       "like " CONFIG_SPOTLIGHT_DEFAULT);
	memcpy(FIELD(char, key, base), text, sizeof(text));
	return 0;
}

/* Room for a DSN, and for a byte order mark, blanks and line ends around it. */
#define DSN_FILE_SIZE (2 * MSG_DSN_MAX)

static int read_dsn_file(int fd, char ret[DSN_FILE_SIZE])
{
	ssize_t n = read(fd, ret, DSN_FILE_SIZE);

	if (n < 0)
		return -errno;
	if (n == DSN_FILE_SIZE)
		return -EFBIG;
	ret[n] = '\0';
	return memchr(ret, '\0', (size_t)n) != NULL ? -EILSEQ : 0;
}

/* Returns text without the byte order mark before it and the blanks around it. */
static const char *strip_dsn(char *text)
{
	static const char mark[] = "\xef\xbb\xbf", blanks[] = " \t\r\n";
	size_t n;

	if (strncmp(text, mark, strlen(mark)) == 0)
		text += strlen(mark);
	text += strspn(text, blanks);
	n = strlen(text);
	while (n > 0 && strchr(blanks, text[n - 1]) != NULL)
		n--;
	text[n] = '\0';
	return text;
}

static int parse_dsn_file(const struct config_key *key, const char *value, void *base,
			  char *problem)
{
	char text[DSN_FILE_SIZE];
	struct stat st = {0};
	int fd, r;

	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	fd = open(value, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && !S_ISREG(st.st_mode)) {
		close_fd(&fd);
		return refuse(problem, "%s: not a regular file", value);
	}
	if (r == 0)
		r = read_dsn_file(fd, text);
	close_fd(&fd);
	if (r < 0)
		return refuse(problem, "%s: %s", value, strerror(-r));
	r = config_check_mode(value, st.st_mode, st.st_uid, true, problem);
	if (r == 0)
		r = parse_dsn(key, strip_dsn(text), base, problem);
	explicit_bzero(text, sizeof(text));
	return r;
}

bool config_value_may_be_secret(const struct config_key *key, const char *value)
{
	const char *scheme = strstr(value, "://");

	if (key != NULL && (key->type == KEY_DSN || key->type == KEY_PROXY))
		return true;
	return scheme != NULL && strchr(scheme, '@') != NULL;
}

const char *config_proxy_problem(const char *url)
{
	const char *host = url, *at = strstr(url, "://"), *colon;
	char port[sizeof("065535")];
	uint64_t ignored;
	size_t n;

	if (at != NULL)
		host = at + strlen("://");
	n = strcspn(host, "/?#");
	at = memrchr(host, '@', n);
	if (at != NULL) {
		n -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	colon = memrchr(host, ':', n);
	/* A colon in brackets belongs to an IPv6 address. */
	if (colon != NULL && memchr(colon, ']', n - (size_t)(colon - host)))
		colon = NULL;
	if (n == 0 || colon == host)
		return "no URL of a proxy: it has no host";
	if (colon == NULL || colon + 1 == host + n)
		return NULL;
	/* Refuses a longer text, which could be a valid port once cut off. */
	if (snprintf(port, sizeof(port), "%.*s", (int)(host + n - (colon + 1)), colon + 1) >=
		    (int)sizeof(port) ||
	    !digits_number(port, 1, UINT16_MAX, &ignored))
		return "no URL of a proxy: its port is not a number from 1 to "
		       "65535";
	return NULL;
}

int config_value_parse(const struct config_key *key, const char *value, void *base,
		       char problem[CONFIG_PROBLEM_MAX])
{
	switch (key->type) {
	case KEY_TEXT:
	case KEY_PATH:
	case KEY_SPOOL:
		return parse_text(key, value, base, problem);
	case KEY_PROXY:
		if (config_proxy_problem(value) != NULL)
			return refuse(problem, "%s", config_proxy_problem(value));
		return parse_text(key, value, base, problem);
	case KEY_PATTERN:
		if (check_rule(key, value, problem) < 0)
			return -EINVAL;
		return parse_text(key, value, base, problem);
	case KEY_USER:
		return parse_user(key, value, base, problem);
	case KEY_DSN:
		return parse_dsn(key, value, base, problem);
	case KEY_DSN_FILE:
		return parse_dsn_file(key, value, base, problem);
	case KEY_ENV:
		return parse_env(key, value, base, problem);
	case KEY_SPOTLIGHT:
		return parse_spotlight(key, value, base, problem);
	case KEY_BOOL:
		return parse_bool(key, value, base, problem);
	case KEY_NUMBER:
		return parse_number(key, value, base, problem);
	case KEY_FRACTION:
	case KEY_SECONDS:
	case KEY_IGNORED:
		return parse_decimal(key, value, base, problem);
	case KEY_BYTES:
		return parse_bytes(key, value, base, problem);
	case KEY_WORD:
		return parse_word(key, value, base, problem);
	}
	return -EINVAL;
}

int config_set(struct config *c, const char *name, const char *option, const char *value,
	       char problem[CONFIG_PROBLEM_MAX])
{
	const struct {
		enum config_section section;
		void *base;
		uint64_t *given;
		struct config_origin *origins;
	} v[] = {
		{SECTION_SENTRY, c, &c->given_sentry, c->origins},
		{SECTION_PROFILER, c, &c->given_profiler, c->origins},
		{SECTION_TARGET, &c->implicit, &c->implicit.given, c->implicit.origins},
	};

	for (size_t i = 0; i < array_size(v); i++) {
		const struct config_key *key = config_key_find(v[i].section, name);

		if (key == NULL)
			continue;
		*v[i].given |= config_key_bit(key);
		v[i].origins[key - config_keys] = (struct config_origin){.given_by = option};
		return config_value_parse(key, value, v[i].base, problem);
	}
	return -EINVAL;
}

int config_check_mode(const char *path, uint32_t mode, uint32_t uid, bool holds_dsn,
		      char problem[CONFIG_PROBLEM_MAX])
{
	if (uid != 0 && uid != geteuid())
		return refuse(problem,
			      "belongs to uid %u, who can change it: chown root "
			      "%s",
			      uid, path);
	if (holds_dsn && (mode & (S_IRWXG | S_IRWXO)) != 0)
		return refuse(problem,
			      "holds a DSN, and others can %s it (mode %04o): "
			      "chmod 600 %s",
			      mode & (S_IWGRP | S_IWOTH) ? "write" : "read", mode & 07777, path);
	if ((mode & (S_IWGRP | S_IWOTH)) != 0)
		return refuse(problem,
			      "can be written by others (mode %04o): chmod "
			      "go-w %s",
			      mode & 07777, path);
	return 0;
}
