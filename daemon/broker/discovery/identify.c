#include "daemon/broker/discovery/identify.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/resource_shortage.h"
#include "daemon/config/match.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/process_facts.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/* Questions that may wait for a helper at a time. */
#define QUESTIONS_MAX 64

/* Bytes of /proc/PID/cgroup. Each hierarchy of cgroup v1 has a line; a path is rarely long. */
#define CGROUP_TEXT_MAX 8192

struct question {
	struct identify *id;
	size_t place; /* in id->asked */
	struct recheck recheck;
	struct process process; /* with the question's own pidfd */
	size_t section;
	uint64_t generation; /* of the configuration that section is an index of */
	bool may_become;     /* a section before that one may match later */
	struct process_facts facts;
	char exe[PATH_MAX];
	char cmdline[PATH_MAX];
	char cgroup[PATH_MAX];
	char container[PROCESS_FACTS_CONTAINER_SIZE];
	struct buf environ;
	unsigned int environ_tries;
};

struct identify {
	struct files *files;
	const struct pid_files *pid_files;
	identify_fn fn;
	void *ctx;
	const struct config *config;
	uint64_t generation;
	struct question *asked[QUESTIONS_MAX]; /* those that wait for a helper */
	size_t n_asked;
};

int identify_new(struct files *files, const struct pid_files *pid_files, identify_fn fn, void *ctx,
		 struct identify **ret)
{
	struct identify *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return -ENOMEM;
	*id = (struct identify){.files = files, .pid_files = pid_files, .fn = fn, .ctx = ctx};
	*ret = id;
	return 0;
}

static void free_question(struct question *q)
{
	close_fd(&q->process.pidfd);
	buf_wipe(&q->environ);
	free(q);
}

void identify_free(struct identify *id)
{
	if (id == NULL)
		return;
	for (size_t i = 0; i < id->n_asked; i++)
		free_question(id->asked[i]);
	free(id);
}

bool identify_has_room(const struct identify *id)
{
	return id->n_asked < QUESTIONS_MAX;
}

void identify_configure(struct identify *id, const struct config *config)
{
	id->config = config;
	id->generation++;
}

static void answer(struct question *q, size_t section)
{
	q->id->fn(q->id->ctx, &q->recheck, &q->process, section);
	free_question(q);
}

void identify_read_exe(int32_t pid, char ret[PATH_MAX])
{
	(void)!procfs_link(procfs_path(pid, "exe").text, ret, PATH_MAX);
}

bool identify_excludes(const struct identify *id, int32_t pid)
{
	const struct config *config = id->config;
	char exe[PATH_MAX];

	for (size_t k = 0; k < config->n_sections; k++)
		if (config->sections[k].exe[0] == '\0')
			return false;
	identify_read_exe(pid, exe);
	for (size_t k = 0; k < config->n_sections; k++)
		if (!match_exe_excludes(&config->sections[k], exe))
			return false;
	return true;
}

void identify_read_cgroup(int32_t pid, char ret[PATH_MAX])
{
	static char text[CGROUP_TEXT_MAX];

	if (small_file_read(AT_FDCWD, procfs_path(pid, "cgroup").text, text, sizeof(text)) < 0 ||
	    !process_facts_cgroup(text, strlen(text), ret, PATH_MAX))
		ret[0] = '\0';
}

static void read_cgroup(struct question *q)
{
	identify_read_cgroup(q->process.pid, q->cgroup);
	process_facts_container(q->cgroup, q->container);
	q->facts.cgroup = q->cgroup;
	q->facts.container = q->container;
}

static void continue_question(struct question *q);

static void add_asked(struct question *q)
{
	struct identify *id = q->id;

	q->place = id->n_asked;
	id->asked[id->n_asked++] = q;
}

static void remove_asked(const struct question *q)
{
	struct identify *id = q->id;
	struct question *last = id->asked[--id->n_asked];

	id->asked[q->place] = last;
	last->place = q->place;
}

/* A files_fn: ctx is the question, fd a memfd with the command line. */
static void on_cmdline(void *ctx, const struct msg_file_request *request, int error, int fd,
		       const struct file_label *file)
{
	struct question *q = ctx;
	ssize_t n = 0;

	(void)request, (void)file;
	remove_asked(q);
	/* A shortage says nothing about the process. */
	if (resource_shortage_is(-error)) {
		answer(q, IDENTIFY_LATER);
		return;
	}
	if (error == 0)
		n = read(fd, q->cmdline, sizeof(q->cmdline));
	close_fd(&fd);
	q->facts.cmdline = q->cmdline;
	q->facts.cmdline_size = n < 0 ? 0 : (size_t)n;
	continue_question(q);
}

/*
 * How often an environment is asked for. Reading fails if the process has changed its rights since
 * the question, as a server does at its start, or if the helper that reads has died.
 */
#define ENVIRON_TRIES 3

static void ask(struct question *q, enum file_kind kind);

/* A files_fn, as above. An environment that cannot be read counts as empty. */
static void on_environ(void *ctx, const struct msg_file_request *request, int error, int fd,
		       const struct file_label *file)
{
	struct question *q = ctx;

	(void)request, (void)file;
	remove_asked(q);
	if ((error == -EACCES || error == -EIO) && ++q->environ_tries < ENVIRON_TRIES) {
		ask(q, FILE_KIND_ENVIRON);
		return;
	}
	if (error == 0)
		error = buf_reserve(&q->environ);
	if (error == 0)
		error = buf_read_fd(&q->environ, fd);
	close_fd(&fd);
	if (resource_shortage_is(-error)) {
		answer(q, IDENTIFY_LATER);
		return;
	}
	q->facts.environ = buf_string(&q->environ);
	q->facts.environ_size = q->environ.len;
	continue_question(q);
}

/*
 * Requests the command line or the environment. A question has at most one request at a time, and
 * identify_has_room() held at its start, so that there is a free place in asked. Without an answer
 * to come, answers the question.
 */
static void ask(struct question *q, enum file_kind kind)
{
	const struct msg_file_request request = {.kind = kind};
	const int pidfd = q->process.pidfd;
	struct owner owner;
	int r = owner_read(q->process.pid, &owner);

	if (r == 0 && kind == FILE_KIND_CMDLINE)
		r = files_request(q->id->files, &request, &owner, pidfd, false, on_cmdline, q);
	else if (r == 0)
		r = files_request_own(q->id->files, &request, &owner, pidfd, on_environ, q);
	if (r == 0)
		add_asked(q);
	else
		answer(q, IDENTIFY_LATER);
}

/*
 * Reads one more fact that the section needs. Returns false if the question now waits for the
 * fact, or was answered because the fact could not be requested.
 */
static bool read_fact(struct question *q, const struct section_config *section)
{
	struct match_needs wants;

	match_needs(section, &wants);
	if (wants.exe && q->facts.exe == NULL) {
		identify_read_exe(q->process.pid, q->exe);
		q->facts.exe = q->exe;
	} else if ((wants.cgroup || wants.container) && q->facts.cgroup == NULL)
		read_cgroup(q);
	else if (wants.pid_file && q->facts.pid_file_pid < 0)
		q->facts.pid_file_pid = pid_files_pid(q->id->pid_files, section->pid_file);
	else {
		ask(q, wants.cmdline && q->facts.cmdline == NULL ? FILE_KIND_CMDLINE
								 : FILE_KIND_ENVIRON);
		return false;
	}
	return true;
}

static void continue_question(struct question *q)
{
	const struct config *config = q->id->config;

	if (q->generation != q->id->generation) {
		q->generation = q->id->generation;
		q->section = 0;
		q->may_become = false;
		q->facts.pid_file_pid = -1;
	}
	while (q->section < config->n_sections) {
		const struct section_config *section = &config->sections[q->section];

		switch (match_process(section, &q->facts)) {
		case MATCH_YES:
			if (q->facts.environ == NULL && q->id->files != NULL)
				ask(q, FILE_KIND_ENVIRON);
			else
				answer(q, process_facts_decline(&q->facts) ? IDENTIFY_NONE
									   : q->section);
			return;
		case MATCH_NO:
			q->may_become |= match_could_change(section, &q->facts);
			q->section++;
			q->facts.pid_file_pid = -1;
			break;
		case MATCH_UNKNOWN:
			if (!read_fact(q, section))
				return;
			break;
		}
	}
	answer(q, q->may_become ? IDENTIFY_NOT_YET : IDENTIFY_NONE);
}

int identify(struct identify *id, const struct recheck *s, struct process *process)
{
	struct question *q = malloc(sizeof(*q));

	if (q == NULL)
		return -ENOMEM;
	/* malloc() and no zeros: the large text buffers are filled only when a rule needs them. */
	q->id = id;
	q->recheck = *s;
	q->process = *process;
	q->process.pidfd = process_take_pidfd(process);
	q->section = 0;
	q->generation = id->generation;
	q->may_become = false;
	q->environ_tries = 0;
	buf_init(&q->environ, MSG_ENVIRON_MAX);
	q->facts = (struct process_facts){
		.pid = process->pid,
		.uid = process->uid,
		.comm = q->process.comm,
		.pid_file_pid = -1,
	};
	continue_question(q);
	return 0;
}
