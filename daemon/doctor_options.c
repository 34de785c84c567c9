/* The command line that the daemon was started with. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/doctor.h"
#include "daemon/options_keys.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"

/* ARG_MAX of most systems. */
#define COMMAND_LINE_MAX (2u << 20)

static int read_command_line(int32_t pid, struct buf *ret)
{
	int fd, r;

	buf_init(ret, COMMAND_LINE_MAX);
	fd = open(procfs_path(pid, "cmdline").text, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : buf_read_fd(ret, fd);
	close_fd(&fd);
	/* A process that has ended has none. */
	if (r == 0 && (ret->len == 0 || ret->data[ret->len - 1] != '\0'))
		r = -ESRCH;
	return r;
}

/* Words with a NUL behind each. NULL: no memory; free(3) is due. */
static char **split(struct buf *words, int *ret_n)
{
	char *at = words->data, *end = at + words->len, **v;
	size_t n = 0;

	for (size_t i = 0; i < words->len; i++)
		n += words->data[i] == '\0';
	v = calloc(n + 1, sizeof(*v));
	for (*ret_n = 0; v != NULL && at < end; at += strlen(at) + 1)
		v[(*ret_n)++] = at;
	return v;
}

static bool is_relative(const char *path)
{
	return path[0] != '\0' && path[0] != '/' && strcmp(path, "none") != 0;
}

/* Paths on its command line begin where it was started. */
static void go_where_it_is(struct doctor *d, const struct config *c)
{
	if (!is_relative(c->ca_certs) && !is_relative(c->client_cert) &&
	    !is_relative(c->client_key) && !is_relative(c->spool))
		return;
	if (chdir(procfs_path(d->daemon_pid, "cwd").text) < 0)
		doctor_say(d, FINDING_WARNING, "options",
			   "relative paths are taken from here: where the "
			   "daemon was started cannot be looked at (%s)",
			   strerror(errno));
}

static void lay_over(int argc, char **argv, struct config *c)
{
	const char *given[OPTIONS_MAX] = {NULL}, *value;
	struct option_fault fault;
	int i;

	optind = 0; /* from the beginning, getopt(3) */
	while ((i = options_next(argc, argv, &value, &fault)) > OPTIONS_END)
		if (i >= 0)
			given[i] = value;
	options_lay_over(given, c);
}

void doctor_options(struct doctor *d, struct config *c)
{
	struct buf words;
	char **argv = NULL;
	int argc, r;

	if (d->config != NULL || !d->is_told)
		return;
	r = read_command_line(d->daemon_pid, &words);
	if (r == 0) {
		argv = split(&words, &argc);
		r = argv == NULL ? -ENOMEM : 0;
	}
	if (r == 0) {
		lay_over(argc, argv, c);
		go_where_it_is(d, c);
	} else {
		doctor_say(d, FINDING_WARNING, "options",
			   "the daemon's cannot be read (%s): what follows is "
			   "without them",
			   strerror(-r));
	}
	free(argv);
	/* There may be a DSN. */
	if (words.data != NULL)
		explicit_bzero(words.data, words.len);
	buf_fini(&words);
}
