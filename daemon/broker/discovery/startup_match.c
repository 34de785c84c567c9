#include "daemon/broker/discovery/startup_match.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/discovery/identify.h"
#include "daemon/common/log.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "lib/base/digits.h"

struct search {
	struct options *options;
	size_t n_found;
	size_t n_of_others; /* skipped: another user's */
	size_t n_too_many;  /* skipped: o->pids is full */
};

static bool is_known(const struct options *o, int32_t pid)
{
	for (size_t i = 0; i < o->n_pids; i++)
		if (o->pids[i] == pid)
			return true;
	return false;
}

/* An identify_fn. The rules here need no command line, so it is called from within identify(). */
static void on_identified(void *ctx, const struct recheck *s, struct process *p, size_t section)
{
	struct search *search = ctx;
	struct options *o = search->options;

	(void)s;
	if (section >= o->n_rules || p->pid == getpid())
		return;
	if (geteuid() != 0 && p->uid != geteuid()) {
		search->n_of_others++;
		return;
	}
	search->n_found++;
	if (is_known(o, p->pid))
		return;
	if (o->n_pids == array_size(o->pids))
		search->n_too_many++;
	else
		o->pids[o->n_pids++] = p->pid;
}

static int identify_process(struct identify *id, int32_t pid)
{
	const struct recheck s = {.pid = pid, .cause = RECHECK_OTHER};
	struct process process;
	enum process_fault fault = process_look(pid, &process);
	int r = 0;

	if (fault == PROCESS_OK || fault == PROCESS_TRACED)
		r = identify(id, &s, &process);
	close_fd(&process.pidfd);
	return r;
}

static int identify_all(struct identify *id)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int32_t pid;
	int r = 0;

	if (dir == NULL)
		return -errno;
	while (r == 0 && (entry = readdir(dir)) != NULL)
		if (digits_pid(entry->d_name, &pid))
			r = identify_process(id, pid);
	(void)closedir(dir);
	return r;
}

static int log_result(const struct search *s)
{
	if (s->n_too_many > 0)
		log_warning("%zu more processes match --name, --unit or --container and are left "
			    "out: no more than %zu are profiled",
			    s->n_too_many, array_size(s->options->pids));
	if (s->n_of_others > 0)
		log_warning("%zu processes of other users match and are left out: only root may "
			    "profile them",
			    s->n_of_others);
	if (s->n_found > 0)
		return 0;
	log_error("no running process matches --name, --unit or --container");
	return -ESRCH;
}

int startup_match_find(struct options *o)
{
	const struct config rules = {.sections = o->rules, .n_sections = o->n_rules};
	struct search search = {.options = o};
	struct identify *id;
	int r;

	if (o->n_rules == 0)
		return 0;
	r = identify_new(NULL, NULL, on_identified, &search, &id);
	if (r == 0) {
		identify_configure(id, &rules);
		r = identify_all(id);
		identify_free(id);
	}
	if (r < 0) {
		log_error("cannot look for processes: %s", strerror(-r));
		return r;
	}
	return log_result(&search);
}
