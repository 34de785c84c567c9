#include "daemon/broker/output_conversion.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/state/forks.h"
#include "daemon/broker/state/options.h"
#include "daemon/common/landlock.h"
#include "daemon/common/log.h"
#include "daemon/common/output_format.h"
#include "daemon/common/privileges.h"
#include "daemon/common/random.h"
#include "daemon/common/spawn.h"
#include "daemon/msg/msg.h"
#include "lib/base/shell_word.h"

#define CONVERTER "sentry-profctl"

/* How many characters of an id make a file's name unique. */
#define UNIQUE_CHARACTERS 12

static int open_converter(struct output_conversion *c)
{
	char path[PATH_MAX];
	int r = spawn_find(CONVERTER, path);

	/* By a descriptor: the process without privileges may have no access to the path. */
	if (r == 0)
		c->exe_fd = open(path, O_PATH | O_CLOEXEC);
	if (r == 0 && c->exe_fd < 0)
		r = -errno;
	if (r < 0)
		log_error("%s cannot be executed, which --output FILE needs: "
			  "%s",
			  CONVERTER, strerror(-r));
	return r;
}

static int open_file(struct output_conversion *c, const char *path, const char *id)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	int n;

	c->name = slash == NULL ? path : slash + 1;
	n = snprintf(dir, sizeof(dir), "%.*s", (int)(c->name - path), path);
	if (n < 0 || (size_t)n >= sizeof(dir))
		return -ENAMETOOLONG;
	n = snprintf(c->temporary, sizeof(c->temporary), ".%s.%.*s", c->name, UNIQUE_CHARACTERS,
		     id);
	if (n < 0 || (size_t)n >= sizeof(c->temporary))
		return -ENAMETOOLONG;
	c->dir_fd = open(dir[0] == '\0' ? "." : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir_fd < 0)
		return -errno;
	c->fd = openat(c->dir_fd, c->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return c->fd < 0 ? -errno : 0;
}

int output_conversion_open(struct output_conversion *c, const char *path, struct output *ret_output)
{
	char envelopes[PATH_MAX], id[MSG_ID_SIZE];
	int n, r;

	*c = (struct output_conversion){.exe_fd = -1, .dir_fd = -1, .fd = -1};
	r = open_converter(c);
	if (r < 0)
		return r;
	random_id(id);
	r = open_file(c, path, id);
	n = snprintf(envelopes, sizeof(envelopes), "%s.%.*s", path, UNIQUE_CHARACTERS, id);
	if (r == 0 && (n < 0 || (size_t)n >= sizeof(envelopes)))
		r = -ENAMETOOLONG;
	if (r == 0)
		r = output_open_private(ret_output, envelopes);
	if (r < 0) {
		log_error("cannot write %s: %s", path, strerror(-r));
		output_conversion_close(c);
	}
	return r;
}

/* Runs in the forked child until execve(2). */
__attribute__((noreturn)) static void convert(const struct output_conversion *c,
					      const struct output *o, uint32_t nice_steps,
					      const char *format)
{
	static char name[] = CONVERTER, command[] = "convert", to[] = "--to", here[] = ".";
	char value[32], *argv[] = {name, command, here, to, value, NULL};
	char *envp[] = {NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(value, sizeof(value), "%s", format);
	spawn_leave_job();
	(void)!nice((int)nice_steps);
	if (null < 0 || fchdir(o->dir_fd) < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(c->fd, STDOUT_FILENO) < 0)
		_exit(SPAWN_FAILED);
	/* Dropping the bounding set needs CAP_SETPCAP. */
	if (privileges_make_effective(~UINT64_C(0)) < 0 ||
	    privileges_drop(PRIVILEGES_KEEP_ID, PRIVILEGES_KEEP_ID, 0, true) < 0 ||
	    landlock_restrict_writing(-1) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(SPAWN_FAILED);
	(void)fexecve(c->exe_fd, argv, envp);
	_exit(SPAWN_FAILED);
}

int output_conversion_start(struct output_conversion *c, const struct output *o,
			    uint32_t nice_steps, const char *format)
{
	const pid_t pid = fork();

	if (pid == 0)
		convert(c, o, nice_steps, format);
	if (pid < 0)
		return -errno;
	forks_add(pid);
	c->pid = pid;
	return 0;
}

bool output_conversion_reaped(struct output_conversion *c, int32_t pid, int status)
{
	if (c->pid == 0 || c->pid != pid)
		return false;
	c->pid = 0;
	c->status = status;
	return true;
}

/* Describes a failed end of the converter. Returns NULL if it has succeeded. */
static const char *outcome(int status, bool was_interrupted, char ret[64])
{

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	if (WIFSIGNALED(status) && was_interrupted)
		return "a signal ended the conversion";
	if (WIFSIGNALED(status))
		(void)snprintf(ret, 64, CONVERTER " was ended by signal %d (%s)", WTERMSIG(status),
			       strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == SPAWN_FAILED)
		(void)snprintf(ret, 64, CONVERTER " cannot be executed");
	else
		(void)snprintf(ret, 64, CONVERTER " ended with status %d", WEXITSTATUS(status));
	return ret;
}

void output_conversion_stop(const struct output_conversion *c)
{
	if (c->pid != 0)
		(void)kill(c->pid, SIGKILL);
}

void output_conversion_finish(struct output_conversion *c, const struct output *o, const char *path,
			      int error, bool was_interrupted)
{
	char words[2][SHELL_WORD_SIZE(PATH_MAX)], text[64];
	const char *why = error < 0 ? strerror(-error) : outcome(c->status, was_interrupted, text);
	int r;

	if (why == NULL) {
		r = output_rename_in(c->dir_fd, c->temporary, c->name);
		why = r < 0 ? strerror(-r) : NULL;
	}
	if (why != NULL) {
		log_error("%s is not written: %s; the envelopes are in %s (try "
			  "again: sentry-profctl convert %s -o %s)",
			  path, why, o->path, shell_word(o->path, words[0], sizeof(words[0])),
			  shell_word(path, words[1], sizeof(words[1])));
		return;
	}
	close_fd(&c->fd);
	output_clear(o);
	c->is_made = true;
}

/*
 * Finds the command by which the user can start sentry-profctl: the file beside sentry-profd if
 * that was started by a path, or else the name, for PATH.
 */
static void name_converter(const char *argv0, char ret[PATH_MAX])
{
	const char *slash = strrchr(argv0, '/');
	const int n = snprintf(ret, PATH_MAX, "%.*s" CONVERTER,
			       slash == NULL ? 0 : (int)(slash + 1 - argv0), argv0);

	if (slash == NULL || n < 0 || n >= PATH_MAX || access(ret, X_OK) < 0)
		(void)snprintf(ret, PATH_MAX, CONVERTER);
}

void output_conversion_print_viewer(const struct output_conversion *c, const struct output *o,
				    const struct options *options)
{
	char words[2][SHELL_WORD_SIZE(PATH_MAX)];
	char path[PATH_MAX];

	(void)fflush(stdout);
	name_converter(options->program, path);
	if (c->is_made)
		output_format_print_viewer(options->output_format, path, options->output);
	else if (options->output_format == NULL)
		(void)fprintf(stderr, "to see it: %s convert %s -o profile.html\n",
			      shell_word(path, words[0], sizeof(words[0])),
			      shell_word(o->path, words[1], sizeof(words[1])));
}

void output_conversion_close(struct output_conversion *c)
{
	if (c->fd >= 0)
		output_unlink_in(c->dir_fd, c->temporary);
	close_fd(&c->fd);
	close_fd(&c->dir_fd);
	close_fd(&c->exe_fd);
}
