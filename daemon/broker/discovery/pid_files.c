#include "daemon/broker/discovery/pid_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/open.h"
#include "daemon/process/process_facts.h"

_Static_assert(CONFIG_TEXT_MAX <= MSG_NAME_MAX, "a path is a name there");

struct pid_file {
	struct pid_files *all;
	char path[CONFIG_TEXT_MAX];
	int32_t pid;
	bool is_asked;
	bool is_left_out;  /* not read again */
	unsigned timeouts; /* of readings in a row */
	uint64_t again_ns; /* not read before this time; 0: no limit */
};

struct pid_files {
	struct files *files;
	pid_files_fn fn;
	void *ctx;
	struct pid_file *v;
	size_t n;
	uint64_t now_ns;
};

int pid_files_new(struct files *files, pid_files_fn fn, void *ctx, struct pid_files **ret)
{
	struct pid_files *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	*p = (struct pid_files){.files = files, .fn = fn, .ctx = ctx};
	*ret = p;
	return 0;
}

static void free_files(struct pid_files *p)
{
	for (size_t i = 0; i < p->n; i++)
		files_forget(p->files, &p->v[i]);
	free(p->v);
	p->v = NULL;
	p->n = 0;
}

void pid_files_free(struct pid_files *p)
{
	if (p == NULL)
		return;
	free_files(p);
	free(p);
}

static const struct pid_file *find_file(const struct pid_file *v, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].path, path) == 0)
			return &v[i];
	return NULL;
}

int32_t pid_files_pid(const struct pid_files *p, const char *path)
{
	const struct pid_file *f = find_file(p->v, p->n, path);

	return f == NULL ? 0 : f->pid;
}

int pid_files_configure(struct pid_files *p, const struct config *config)
{
	struct pid_file *v = NULL;
	size_t n = 0;

	if (config->n_sections > 0) {
		v = calloc(config->n_sections, sizeof(*v));
		if (v == NULL) {
			free_files(p);
			return -ENOMEM;
		}
	}
	for (size_t k = 0; k < config->n_sections; k++) {
		const char *path = config->sections[k].pid_file;

		if (*path == '\0' || find_file(v, n, path) != NULL)
			continue;
		v[n].all = p;
		v[n].pid = pid_files_pid(p, path);
		memcpy(v[n].path, path, strlen(path) + 1);
		n++;
	}
	free_files(p);
	p->v = v;
	p->n = n;
	return 0;
}

static void on_timeout(struct pid_file *f)
{
	f->timeouts++;
	f->is_left_out = f->timeouts == PID_FILES_TIMEOUTS_MAX;
	f->again_ns = f->all->now_ns + PID_FILES_RETRY_NS;
	log_warning("pid_file %s cannot be read: its file system does not answer; %s", f->path,
		    f->is_left_out ? "the file is not read again before a reload"
				   : "the file is read again in a minute");
}

static void on_remote(struct pid_file *f)
{
	f->is_left_out = true;
	log_warning("pid_file %s is not read: it is not on a local file system, but on NFS, FUSE "
		    "or the like; its section matches no process",
		    f->path);
}

/* A files_fn: ctx is the struct pid_file, fd a memfd with the beginning of the file. */
static void on_read(void *ctx, const struct msg_file_request *request, int error, int fd,
		    const struct file_label *label)
{
	struct pid_file *f = ctx;
	const int32_t before = f->pid;
	char text[OPEN_PID_FILE_MAX];
	ssize_t n = -1;

	(void)request, (void)label;
	f->is_asked = false;
	if (error == 0)
		n = read(fd, text, sizeof(text));
	close_fd(&fd);
	if (error == -ETIMEDOUT) {
		on_timeout(f);
		return;
	}
	f->timeouts = 0;
	if (error == -EREMOTE)
		on_remote(f);
	f->pid = n < 0 ? 0 : process_facts_pid_file(text, (size_t)n);
	f->all->fn(f->all->ctx, f->pid, before);
}

void pid_files_read(struct pid_files *p, uint64_t now_ns)
{
	p->now_ns = now_ns;
	for (size_t i = 0; i < p->n; i++) {
		struct pid_file *f = &p->v[i];

		if (f->is_asked || f->is_left_out || now_ns < f->again_ns)
			continue;
		/* If the request fails, the next second tries again. */
		f->is_asked = true;
		if (files_request_path(p->files, FILE_KIND_PID_FILE, f->path, on_read, f) < 0)
			f->is_asked = false;
	}
}
