/*
 * The keys of a configuration: one table for reading, printing, comparing.
 */
#ifndef DAEMON_CONFIG_CONFIG_KEYS_H
#define DAEMON_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "lib/base/util.h"

enum config_section {
	SECTION_NONE,
	SECTION_SENTRY,
	SECTION_PROFILER,
	SECTION_TARGET,
};

enum key_type {
	KEY_TEXT,      /* up to 200 bytes */
	KEY_PATTERN,   /* as text; daemon/config/match.h */
	KEY_PATH,      /* absolute in a file; up to max bytes, if there is one */
	KEY_USER,      /* a name in /etc/passwd or a number */
	KEY_DSN,       /* in struct config and target_config: dsn */
	KEY_DSN_FILE,  /* an absolute path; what is in it becomes dsn */
	KEY_BOOL,      /* yes, no */
	KEY_NUMBER,    /* min to max */
	KEY_FRACTION,  /* 0.0 to 1.0 */
	KEY_SECONDS,   /* with decimals, above 0 */
	KEY_BYTES,     /* min and more; K, M and G are of 1024 */
	KEY_WORD,      /* one of words, an enum */
	KEY_SPOOL,     /* a path or none */
	KEY_PROXY,     /* daemon/config/proxy.h; not to be shown, as a DSN is not */
	KEY_SPOTLIGHT, /* yes, no and words for these, or a URL */
	KEY_V1,	       /* profiles_sample_rate: has no effect */
};

struct config_key {
	enum config_section section;
	enum key_type type;
	const char *name;
	size_t offset; /* in struct config, or target_config */
	bool is_taken; /* at a reload; else it takes another start */
	uint32_t min, max;
	const char *const *words; /* ends with NULL */
};

/* No more than bits in the masks of what is given. */
extern const struct config_key config_keys[];
extern const size_t config_n_keys;

const struct config_key *config_key_find(enum config_section section, const char *name);
/* The section that has it, if another one has. */
enum config_section config_key_elsewhere(const char *name);
uint64_t config_key_bit(const struct config_key *key);
/* Does the section have it, and where? The origin is zeros if not. */
bool config_target_gives(const struct target_config *t, const char *name);
const struct config_origin *config_target_origin(const struct target_config *t, const char *name);
/* Of [sentry] and [profiler]. */
const struct config_origin *config_origin(const struct config *c, enum config_section section,
					  const char *name);
const char *config_section_name(enum config_section section);

/*
 * Reads a value into the struct that has it: struct config or target_config.
 * Returns 0; else problem says what is wrong with the value, not the value.
 * For KEY_DSN_FILE: reads the file, too.
 */
#define CONFIG_PROBLEM_MAX 256
must_check int config_value_parse(const struct config_key *key, const char *value, void *base,
				  char problem[CONFIG_PROBLEM_MAX]);
/*
 * By the command line's option by, a key of [sentry] or [profiler], else of the
 * target that it makes: it counts as given. Returns and problem as above.
 */
must_check int config_set(struct config *c, const char *name, const char *by, const char *value,
			  char problem[CONFIG_PROBLEM_MAX]);
/* Is it the same in both? */
bool config_value_equal(const struct config_key *key, const void *a, const void *b);
/*
 * As it would be written; a DSN without its key. False: there is nothing to
 * be written.
 */
bool config_value_print(const struct config_key *key, const void *base, char ret[MSG_DSN_MAX]);

/*
 * config_targets.c, for config_resolve: what is wrong with a section although
 * each of its values is good; and with a section beside those before it.
 */
void config_target_check(const struct config *c, const struct target_config *t,
			 struct config_faults *faults);
/* A rule's value, as config_value_parse: one that fits no process is a fault.
 */
must_check int config_rule_check(const struct config_key *key, const char *value,
				 char problem[CONFIG_PROBLEM_MAX]);

/*
 * Who may see a DSN that is in a file, who may write to it? 0, or problem has
 * the command that mends it. holds_dsn: else only writing counts.
 */
must_check int config_check_mode(const char *path, uint32_t mode, uint32_t uid, bool holds_dsn,
				 char problem[CONFIG_PROBLEM_MAX]);

#endif
