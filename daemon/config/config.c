#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/common/spool_dir.h"

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

void config_keep_sections(struct config *c, const struct config *old)
{
	for (size_t i = 0; i < c->n_targets; i++) {
		struct target_config *t = &c->targets[i], new = *t;
		const struct target_config *before = config_target(old, t->name);

		if (!t->is_off || before == NULL || before->is_off)
			continue;
		*t = *before;
		memcpy(t->defect, new.defect, sizeof(t->defect));
		/* The origins of old are lines of files as they were. */
		memset(t->origins, 0, sizeof(t->origins));
		t->origin = new.origin;
	}
}

uint32_t config_add_file(struct config *c, const char *name)
{
	if (c->n_files == array_size(c->files))
		return c->n_files;
	/* If memory cannot be allocated, the name is NULL, and faults show no file name. */
	c->files[c->n_files++] = strdup(name);
	return c->n_files;
}
