#include "daemon/ctl/doctor/debian_package.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/spawn.h"
#include "lib/base/buf.h"

/* A line for each file has less than a tenth of it. More is not read. */
#define ANSWER_MAX (1u << 20)

/*
 * Returns the path by which packages from before the merge of /lib into /usr/lib know the file:
 * dpkg-query does not follow the links. NULL: there is no such path.
 */
static const char *path_before_merge(const char *path)
{
	static const char *const merged[] = {"/usr/lib", "/usr/bin/", "/usr/sbin/"};

	for (size_t i = 0; i < array_size(merged); i++)
		if (strncmp(path, merged[i], strlen(merged[i])) == 0)
			return path + strlen("/usr");
	return NULL;
}

/* Returns NULL-terminated arguments, which the caller frees; the strings are those of files. */
static const char **make_arguments(const char *program, const struct debian_file *files, size_t n)
{
	const char **argv = calloc(2 * n + 4, sizeof(*argv));
	size_t argc = 0;

	if (argv == NULL)
		return NULL;
	argv[argc++] = program;
	argv[argc++] = "--search";
	argv[argc++] = "--";
	for (size_t i = 0; i < n; i++) {
		if (strpbrk(files[i].path, "*?[\\") != NULL)
			continue;
		argv[argc++] = files[i].path;
		if (path_before_merge(files[i].path) != NULL)
			argv[argc++] = path_before_merge(files[i].path);
	}
	return argv;
}

/* Runs in the child. The environment makes dpkg-query print English. */
static void execute(const char *const *argv, int out, int32_t parent)
{
	static char language[] = "LC_ALL=C";
	static char *environment[] = {language, NULL};
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == parent &&
	    dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0)
		(void)execve(argv[0], (char *const *)(uintptr_t)argv, environment);
	_exit(SPAWN_FAILED);
}

/* Reads what the program prints until it closes its output, up to the deadline. */
static void read_answer(int fd, uint64_t deadline_ns, struct buf *ret)
{
	char bytes[4096];
	ssize_t n = 1;

	while (n > 0) {
		const uint64_t now_ns = clock_mono_ns();
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (now_ns >= deadline_ns)
			return;
		if (poll(&p, 1, (int)((deadline_ns - now_ns) / NS_PER_MS) + 1) <= 0)
			continue;
		n = read(fd, bytes, sizeof(bytes));
		if (n > 0 && buf_add(ret, bytes, (size_t)n) < 0)
			return;
	}
}

/* Runs the program, and kills it if it has not ended its output by the deadline. */
static void ask(const char *const *argv, uint64_t deadline_ns, struct buf *ret)
{
	const int32_t parent = getpid();
	int pipe_fds[2];
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return;
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		execute(argv, pipe_fds[1], parent);
	(void)close(pipe_fds[1]);
	if (pid > 0) {
		read_answer(pipe_fds[0], deadline_ns, ret);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	(void)close(pipe_fds[0]);
}

static bool is_path_of(const struct debian_file *f, const char *path)
{
	const char *before = path_before_merge(f->path);

	return strcmp(f->path, path) == 0 || (before != NULL && strcmp(before, path) == 0);
}

/*
 * Takes a line "NAME:ARCHITECTURE, ...: PATH". Lines about diversions have no such name: "diversion
 * by NAME from: PATH".
 */
static void take_line(char *line, struct debian_file *files, size_t n)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
	const size_t length = strspn(line, letters);
	const char *path = strstr(line, ": /");

	if (length == 0 || strchr(":,", line[length]) == NULL || line[length] == '\0' ||
	    path == NULL)
		return;
	path += strlen(": ");
	line[length] = '\0';
	for (size_t i = 0; i < n; i++)
		if (is_path_of(&files[i], path))
			(void)snprintf(files[i].package, sizeof(files[i].package), "%s", line);
}

void debian_package_find(const char *program, uint64_t limit_ns, struct debian_file *files,
			 size_t n)
{
	const uint64_t deadline_ns = clock_mono_ns() + limit_ns;
	const char **argv = make_arguments(program, files, n);
	struct buf answer;
	char *line, *end;

	for (size_t i = 0; i < n; i++)
		files[i].package[0] = '\0';
	if (argv == NULL)
		return;
	buf_init(&answer, ANSWER_MAX);
	/* Without a path in them dpkg-query would fail. */
	if (argv[3] != NULL)
		ask(argv, deadline_ns, &answer);
	/* A last line without its end is incomplete. */
	for (line = answer.data; line != NULL && (end = strchr(line, '\n')) != NULL;
	     line = end + 1) {
		*end = '\0';
		take_line(line, files, n);
	}
	buf_fini(&answer);
	free(argv);
}

void debian_package_debug(const char *package, char ret[DEBIAN_PACKAGE_NAME_SIZE])
{
	/* That of glibc is made by hand, and all others by debhelper. */
	(void)snprintf(ret, DEBIAN_PACKAGE_NAME_SIZE, "%.*s-%s", DEBIAN_PACKAGE_NAME_SIZE - 8,
		       package, strcmp(package, "libc6") == 0 ? "dbg" : "dbgsym");
}
