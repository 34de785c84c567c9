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
	if (c->sections != NULL)
		explicit_bzero(c->sections, c->n_sections * sizeof(*c->sections));
	free(c->sections);
	for (size_t i = 0; i < c->n_files; i++)
		free(c->files[i]);
	explicit_bzero(c, sizeof(*c));
}

struct section_config *config_section(const struct config *c, const char *name)
{
	for (size_t i = 0; i < c->n_sections; i++)
		if (strcmp(c->sections[i].name, name) == 0)
			return &c->sections[i];
	return NULL;
}

void config_keep_sections(struct config *c, const struct config *old)
{
	for (size_t i = 0; i < c->n_sections; i++) {
		struct section_config *section = &c->sections[i], new = *section;
		const struct section_config *before = config_section(old, section->name);

		if (!section->is_off || before == NULL || before->is_off)
			continue;
		*section = *before;
		memcpy(section->defect, new.defect, sizeof(section->defect));
		/* The origins of old are lines of files as they were. */
		memset(section->origins, 0, sizeof(section->origins));
		section->origin = new.origin;
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
