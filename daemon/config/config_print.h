/*
 * Prints a configuration, for --check-config, and compares two, for a reload.
 *
 * Secrets are left out of what is printed: the key of a DSN, the user and the password of a proxy.
 * The comparisons include these secrets.
 */
#ifndef DAEMON_CONFIG_CONFIG_PRINT_H
#define DAEMON_CONFIG_CONFIG_PRINT_H

#include <stdbool.h>

#include "daemon/config/config.h"
#include "daemon/config/config_keys.h"
#include "lib/base/util.h"

/* Writes c to fd in the format of its file: every key that has a value. Returns 0 or -errno. */
must_check int config_print(const struct config *c, int fd);

/* Returns true if key has the same value in a and b, two structs of the key's section. */
bool config_value_equal(const struct config_key *key, const void *a, const void *b);

/*
 * Returns true if all keys of the two sections have the same values, and is_off is equal. If both
 * sections are off, the texts of defect must be equal, too. The names of the sections may differ.
 */
bool config_section_equal(const struct section_config *a, const struct section_config *b);

/* Returns true if all keys and sections of the two configurations are equal. */
bool config_equal(const struct config *a, const struct config *b);

/*
 * Calls fn for each key of [sentry] and [profiler] whose value differs between old and new, if a
 * reload does not take the new value (config_key.is_reloadable). section: "[sentry]" or
 * "[profiler]".
 */
typedef void (*config_key_fn)(void *ctx, const char *section, const char *key);
void config_changed_keys(const struct config *old, const struct config *new, config_key_fn fn,
			 void *ctx);

#endif
