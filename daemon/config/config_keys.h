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

#endif
