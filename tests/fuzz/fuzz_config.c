/* A configuration file, as somebody has written it. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_print.h"
#include "daemon/config/config_read.h"
#include "daemon/config/config_resolve.h"
#include "daemon/config/match.h"

static char *nothing(const char *name)
{
	(void)name;
	return NULL;
}

/* A fault is one line, and says where it is. */
static void check_faults(const struct config_faults *f)
{
	size_t errors = 0;

	for (size_t i = 0; i < f->n; i++) {
		errors += !f->v[i].is_warning;
		for (const char *p = f->v[i].text; *p != '\0'; p++)
			assert((unsigned char)*p >= 0x20 || *p == '\t');
	}
	assert(errors <= f->n_errors);
	assert(errors == f->n_errors || f->n == CONFIG_FAULTS_MAX);
}

static void check_section(const struct section_config *t)
{
	const struct process_facts facts = {
		.pid = 1,
		.uid = 0,
		.comm = "init",
		.exe = "/usr/lib/systemd/systemd",
		.cmdline = "/sbin/init\0splash",
		.cmdline_size = 18,
		.cgroup = "/init.scope",
		.container = "",
		.environ = "HOME=/\0TERM=linux",
		.environ_size = 18,
	};

	assert(t->name[0] != '\0' && strlen(t->name) < CONFIG_NAME_MAX);
	assert(match_has_rules(t) || t->is_off);
	assert(match_process(t, &facts) != MATCH_UNKNOWN);
	assert(t->session_sample_rate >= 0 && t->session_sample_rate <= 1);
	assert(t->rate_hz >= 1 && t->rate_hz <= CONFIG_RATE_MAX_HZ);
	assert(config_section_equal(t, t));
}

static void on_key(void *ctx, const char *section, const char *key)
{
	(void)ctx;
	(void)section;
	(void)key;
	assert(0);
}

static void check_config(const struct config *c)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	assert(c->n_sections <= CONFIG_SECTIONS_MAX);
	for (size_t i = 0; i < c->n_sections; i++) {
		check_section(&c->sections[i]);
		assert(config_section(c, c->sections[i].name) == &c->sections[i]);
	}
	config_changed_keys(c, c, on_key, NULL);
	assert(fd < 0 || config_print(c, fd) == 0);
	close_fd(&fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config_faults faults;
	const struct config_text text = {
		.name = "fuzz.conf",
		.place = CONFIG_MAIN,
		.bytes = (const char *)data,
		.size = size,
		.mode = 0600,
		.uid = geteuid(),
	};
	struct config c;

	config_init(&c);
	config_read_text(&c, &text, &faults);
	if (faults.n_errors == 0 && config_resolve(&c, nothing, &faults) == 0)
		check_config(&c);
	check_faults(&faults);
	config_faults_fini(&faults);
	config_fini(&c);
	return 0;
}
