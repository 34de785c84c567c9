#include "daemon/broker/discovery/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/state/forks.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "lib/base/ipc.h"

/* The value if PATH is not set, as in execvp(3). */
#define PATH_DEFAULT "/bin:/usr/bin"

#define FILE_CAPABILITIES "security.capability" /* capabilities(7) */

/*
 * The kernel follows so many interpreters, each of which may be a script itself (exec_binprm() in
 * fs/exec.c), and reads so many bytes of each file.
 */
#define SCRIPTS_MAX   5
#define SCRIPT_HEADER 256

/*
 * The child's message when it is ready to execute the command. It carries the program (struct
 * command), if that can be opened.
 */
struct ready {
	bool is_privileged;
	struct leak_options leak_options;
};

__attribute__((noreturn)) static void not_started(const char *what)
{
	log_error("cannot start the command: %s: %s", what, strerror(errno));
	_exit(COMMAND_NOT_STARTED);
}

/* Changes the user as su(1) does without "-": the rest of the environment stays the caller's. */
static void change_user(const char *user)
{
	struct passwd *entry;

	errno = 0;
	entry = getpwnam(user);
	if (entry == NULL) {
		log_error("--user: there is no user %s%s%s", user, errno == 0 ? "" : ": ",
			  errno == 0 ? "" : strerror(errno));
		_exit(COMMAND_NOT_STARTED);
	}
	if (initgroups(user, entry->pw_gid) < 0 ||
	    setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) < 0 ||
	    setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) < 0) {
		log_error("cannot become user %s: %s", user, strerror(errno));
		_exit(COMMAND_NOT_STARTED);
	}
	if (setenv("HOME", entry->pw_dir, 1) < 0 || setenv("SHELL", entry->pw_shell, 1) < 0 ||
	    setenv("USER", user, 1) < 0 || setenv("LOGNAME", user, 1) < 0)
		not_started("setenv");
}

/* Returns 0 if path can be executed, or a positive errno. */
static int check_executable(const char *path, struct stat *ret)
{
	if (stat(path, ret) < 0)
		return errno;
	if (S_ISDIR(ret->st_mode))
		return EISDIR;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

/*
 * Searches PATH by the rules of execvp(3): an empty component is the current directory, and a
 * file that may not be executed is skipped. Returns 0 or a positive errno.
 */
static int search(const char *name, char ret[PATH_MAX], struct stat *ret_file)
{
	const char *at = getenv("PATH");
	int error = ENOENT;

	if (at == NULL)
		at = PATH_DEFAULT;
	for (;;) {
		const size_t n = strcspn(at, ":");
		const int length =
			snprintf(ret, PATH_MAX, "%.*s%s%s", (int)n, at, n == 0 ? "./" : "/", name);
		int r = length < PATH_MAX ? check_executable(ret, ret_file) : ENAMETOOLONG;

		if (r == 0)
			return 0;
		if (r == EACCES)
			error = r;
		if (at[n] == '\0')
			return error;
		at += n + 1;
	}
}

/* Exits with a message and a status as a shell would. */
__attribute__((noreturn)) static void cannot_execute(const char *name, int error)
{
	if (error == ENOENT && strchr(name, '/') == NULL)
		log_error("%s: command not found", name);
	else
		log_error("%s: %s", name, strerror(error));
	_exit(error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NO_EXEC);
}

static void find_executable(const char *name, char ret[PATH_MAX], struct stat *ret_file)
{
	int error;

	if (strchr(name, '/') == NULL)
		error = name[0] == '\0' ? ENOENT : search(name, ret, ret_file);
	else if (snprintf(ret, PATH_MAX, "%s", name) >= PATH_MAX)
		error = ENAMETOOLONG;
	else
		error = check_executable(ret, ret_file);
	if (error != 0)
		cannot_execute(name, error);
}

static bool gives_privileges(const char *path, const struct stat *file)
{
	const bool runs_as_group = (file->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);

	return ((file->st_mode & S_ISUID) && file->st_uid != geteuid()) ||
	       (runs_as_group && file->st_gid != getegid()) ||
	       getxattr(path, FILE_CAPABILITIES, NULL, 0) > 0;
}

/* Opens a file that can be executed, and reads its beginning. Returns -1 or the descriptor. */
static int open_program(const char *path, char header[SCRIPT_HEADER + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = pread(fd, header, SCRIPT_HEADER, 0);
	if (n < 0)
		close_fd(&fd);
	header[n < 0 ? 0 : n] = '\0';
	return fd;
}

/*
 * Returns the interpreter that the first line of a script names, in header; NULL: the file is no
 * script (load_script() in fs/binfmt_script.c).
 */
static const char *interpreter_of(char header[SCRIPT_HEADER + 1])
{
	char *name = header + 2;

	if (strncmp(header, "#!", 2) != 0)
		return NULL;
	name += strspn(name, " \t");
	name[strcspn(name, " \t\n")] = '\0';
	return name[0] == '\0' ? NULL : name;
}

/* Opens the program that the kernel executes for path. Returns -1 if it cannot be read. */
static int find_program(const char *path)
{
	char header[SCRIPT_HEADER + 1], of_interpreter[SCRIPT_HEADER + 1];
	int fd = open_program(path, header);

	for (int i = 0; i < SCRIPTS_MAX && fd >= 0; i++) {
		const char *interpreter = interpreter_of(header);

		if (interpreter == NULL)
			break;
		close_fd(&fd);
		fd = open_program(interpreter, of_interpreter);
		memcpy(header, of_interpreter, sizeof(header));
	}
	return fd;
}

/* Tells the broker that the child can execute the command. Exits if the broker has ended. */
static void send_ready(int fd, const char *path, const struct stat *file)
{
	struct ready ready = {.is_privileged = gives_privileges(path, file)};
	int program = find_program(path), r;

	leak_options_read(getenv("ASAN_OPTIONS"), getenv("LSAN_OPTIONS"), getenv("LD_PRELOAD"),
			  &ready.leak_options);
	r = ipc_send(fd, &ready, sizeof(ready), &program, program >= 0);
	close_fd(&program);
	if (r < 0)
		_exit(COMMAND_NOT_STARTED);
}

__attribute__((noreturn)) static void run_child(int fd, char **argv, const char *user)
{
	char path[PATH_MAX], go;
	struct stat file;

	/*
	 * Yama may allow only ancestors to trace. Capture is a sibling of the command; this
	 * permits the broker and its descendants. It stays in effect after execve(2).
	 */
	(void)prctl(PR_SET_PTRACER, getppid(), 0, 0, 0);
	if (user != NULL) {
		change_user(user);
		/*
		 * Dumpable as the command will be, so that its owner does not change when it is
		 * executed. The broker has read no secret yet.
		 */
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	}
	find_executable(argv[0], path, &file);
	send_ready(fd, path, &file);
	while (recv(fd, &go, 1, 0) != 1)
		if (errno != EINTR)
			_exit(COMMAND_NOT_STARTED);
	/* argv[0] stays as the user gave it. */
	(void)execvp(path, argv);
	cannot_execute(path, errno);
}

/* Moves a descriptor above 2: if one of 0 to 2 is closed, it must stay closed for the command. */
static int move_up(int *fd)
{
	const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	close_fd(fd);
	*fd = moved;
	return moved;
}

void command_fork(struct command *c, char **argv, const char *user)
{
	int pair[2];

	if (ipc_pair(pair) < 0 || move_up(&pair[0]) < 0 || move_up(&pair[1]) < 0)
		not_started("socketpair");
	c->pid = fork();
	if (c->pid < 0)
		not_started("fork");
	if (c->pid == 0) {
		close_fd(&pair[0]);
		run_child(pair[1], argv, user);
	}
	forks_add(c->pid);
	close_fd(&pair[1]);
	c->go_fd = pair[0];
}

int command_exit_status(const struct command *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void command_wait_ready(struct command *c)
{
	struct ipc_message m;
	struct ready ready;
	int r;

	do
		r = ipc_recv(c->go_fd, &m);
	while (r == -EINTR);
	if (r != 1 || m.size != sizeof(ready))
		exit(command_abandon(c));
	memcpy(&ready, m.bytes, sizeof(ready));
	c->is_privileged = ready.is_privileged;
	c->leak_options = ready.leak_options;
	c->file = ipc_take_fd(&m, 0);
}

void command_leave_streams(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		log_warning("sentry-profd cannot close its own copies of the command's standard "
			    "input and output: %s; a reader of the command's output may wait until "
			    "sentry-profd ends",
			    strerror(errno));
	close_fd(&null);
}

void command_warn(const struct command *c, const struct options *o)
{
	capability_set have;

	if (privileges_permitted(&have) < 0 || have & CAPABILITY(CAP_SYS_PTRACE))
		return;
	if (o->children)
		log_warning("set-user-ID, set-group-ID and file capabilities of programs that the "
			    "command's children execute have no effect, because sentry-profd "
			    "traces without CAP_SYS_PTRACE; start sentry-profd as root");
	if (!c->is_privileged)
		return;
	log_warning("%s is set-user-ID, set-group-ID or has capabilities: the "
		    "kernel ignores that, as sentry-profd traces it without "
		    "CAP_SYS_PTRACE; start sentry-profd as root",
		    o->command[0]);
}

static void send_go(struct command *c)
{
	/* If this fails, the child has ended, which SIGCHLD reports. */
	(void)!send(c->go_fd, "", 1, MSG_NOSIGNAL);
	close_fd(&c->go_fd);
}

void command_cancel(struct command *c)
{
	close_fd(&c->go_fd);
}

void command_check(struct command *c, struct targets *ts)
{
	const struct instance *i = command_is_held(c) ? instance_of_pid(ts, c->pid) : NULL;

	/* While a rate limit holds, the command runs without a profile. */
	if (i != NULL && (i->was_attached || server_limit_stops_sampling(i->ship)))
		send_go(c);
	else if (i != NULL && i->obstacle == INSTANCE_LEFT_OUT)
		command_cancel(c);
	if (command_is_held(c))
		return;
	ts->held_pid = 0;
	close_fd(&c->file);
}

/*
 * Returns true for a signal of another process, which may know only the broker's pid: it is
 * forwarded. A terminal sends to the whole process group; the command may send to its own group.
 * If another process has sent the signal to the group, the command gets it twice; the broker
 * cannot detect that.
 */
static bool is_to_be_forwarded(const struct command *c, const struct signalfd_siginfo *info)
{
	return info->ssi_code <= 0 && (int32_t)info->ssi_pid != c->pid;
}

bool command_handle_signal(const struct command *c, const struct signalfd_siginfo *info)
{
	if (c->pid == 0 || c->has_ended)
		return false;
	switch (info->ssi_signo) {
	case SIGINT:
	case SIGQUIT:
	case SIGTERM:
	case SIGHUP:
		if (is_to_be_forwarded(c, info))
			(void)kill(c->pid, (int)info->ssi_signo);
		return true;
	case SIGTSTP:
		/* From a terminal: the command decides whether it stops. */
		return info->ssi_code == SI_KERNEL;
	default:
		return false;
	}
}

static bool is_of_terminal(int signal)
{
	return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

void command_check_stopped(const struct command *c, struct state *s)
{
	siginfo_t info = {.si_pid = 0};

	if (c->pid == 0 || c->has_ended ||
	    waitid(P_PID, (id_t)c->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
	    info.si_pid == 0)
		return;
	/* The broker stops, too, so that a shell that waits for it notices. */
	if (info.si_code == CLD_STOPPED && is_of_terminal(info.si_status))
		s->suspend_requested = true;
	else if (info.si_code == CLD_CONTINUED)
		s->suspend_requested = false;
}

void command_ended(struct command *c, int status)
{
	c->has_ended = true;
	c->status = status;
	command_cancel(c);
}

int command_abandon(struct command *c)
{
	int status;

	command_cancel(c);
	while (!c->has_ended && waitpid(c->pid, &status, 0) < 0)
		if (errno != EINTR)
			return COMMAND_NOT_STARTED;
	if (!c->has_ended)
		command_ended(c, status);
	return command_exit_status(c);
}
