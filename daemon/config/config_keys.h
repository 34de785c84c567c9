/*
 * The table of all keys of a configuration: section, type, name, and field in struct config
 * or struct section_config. Reading (config_read.h, config_value.h), printing and comparing
 * (config_print.h) use this table, so that a new key needs only a field and a row here.
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

/*
 * The values that a key can have. min, max and words are those of struct config_key. The key's
 * field is an array of char with room for the longest value and a NUL. Exceptions: bool for
 * KEY_BOOL, uint32_t for KEY_NUMBER, double for KEY_FRACTION and KEY_SECONDS, uint64_t for
 * KEY_BYTES, an enum for KEY_WORD.
 */
enum key_type {
	KEY_TEXT,     /* up to max bytes of UTF-8; max 0: 200. If words is not NULL, one of words */
	KEY_PATTERN,  /* a pattern (daemon/config/match.h) of up to max bytes; max 0: 255 */
	KEY_PATH,     /* up to max bytes; max 0: 255. In a configuration file: absolute */
	KEY_USER,     /* a name in /etc/passwd or a number; sets section_config.uid, too */
	KEY_DSN,      /* a DSN, for the field dsn */
	KEY_DSN_FILE, /* an absolute path of a file whose content becomes the field dsn */
	KEY_ENV,      /* NAME=PATTERN, added to the field, which has up to max bytes in all */
	KEY_BOOL,     /* yes or true, no or false */
	KEY_NUMBER,   /* min to max */
	KEY_FRACTION, /* 0.0 to 1.0 */
	KEY_SECONDS,  /* a decimal number above 0, at most max */
	KEY_BYTES,    /* at least min; the units K, M and G are powers of 1024 */
	KEY_WORD,     /* one of words; the field is an enum in the same order */
	KEY_SPOOL,    /* a path, or "none" */
	KEY_PROXY,    /* the URL of a proxy: config_proxy_problem(); a secret, as a DSN is */
	KEY_SPOTLIGHT, /* a word for yes or no, or a URL */
	/* profiles_sample_rate, of Sentry's former profiling: accepted with a warning, no effect */
	KEY_IGNORED,
};

struct config_key {
	enum config_section section;
	enum key_type type;
	const char *name;
	size_t offset;	    /* of the field in struct config or struct section_config */
	bool is_reloadable; /* true: a reload takes the new value; false: only a start does */
	/* The limits of the value, as enum key_type says. */
	uint32_t min, max;
	const char *const *words; /* the permitted words, with NULL at the end; NULL: none */
};

/* The table has one row, of this name, for all keys `env NAME` of a section. */
#define CONFIG_KEY_ENV "env NAME"

/* The table; it has at most CONFIG_KEYS_MAX keys. */
extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* Returns the key of this section, or NULL. For a key `env FOO` pass CONFIG_KEY_ENV. */
const struct config_key *config_key_find(enum config_section section, const char *name);
/* Returns the first section that has a key of this name, or SECTION_NONE. */
enum config_section config_key_section(const char *name);
/* Returns the bit of the key in the masks of given keys. */
uint64_t config_key_bit(const struct config_key *key);
/* Returns true if the section gives this key. name must be a key of SECTION_TARGET. */
bool config_section_gives(const struct section_config *section, const char *name);
/*
 * Returns the origin of a key of SECTION_TARGET in this section; all zeros if the section does not
 * give the key.
 */
const struct config_origin *config_section_origin(const struct section_config *section,
						  const char *name);
/* Returns the origin of a key of [sentry] or [profiler]; all zeros if the key is not given. */
const struct config_origin *config_origin(const struct config *c, enum config_section section,
					  const char *name);
/*
 * Returns "[sentry]", "[profiler]", or for SECTION_TARGET the constant text "[target \"NAME\"]";
 * for SECTION_NONE "".
 */
const char *config_section_name(enum config_section section);

#endif
