#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/common/spool_dir.h"
#include "daemon/config/config_keys.h"

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

struct target_config *config_target(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_targets; i++)
		if (strcmp(c->targets[i].name, name) == 0)
			return &c->targets[i];
	return NULL;
}

/* Targets: their name is not compared, who asks has found them by it. */
bool target_config_equal(const struct target_config *a, const struct target_config *b)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (config_keys[i].section == SECTION_TARGET &&
		    !config_value_equal(&config_keys[i], a, b))
			return false;
	return true;
}

void config_changed_keys(const struct config *old, const struct config *new, config_key_fn fn,
			 void *ctx)
{
	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		if (!key->is_taken && !config_value_equal(key, old, new))
			fn(ctx, config_section_name(key->section), key->name);
	}
}
