/*
 * The server of the integration tests (tests/integration/server.py) as a child of a unit test. The
 * server ends with the test, however that ends, because its standard input is closed then.
 */
#ifndef TESTS_UNIT_SHIP_SERVER_H
#define TESTS_UNIT_SHIP_SERVER_H

#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define SERVER_PROGRAM	"tests/integration/server.py"
#define SERVER_ARGS_MAX 8

struct server {
	pid_t pid;
	int input;
	char dir[32];
	char dsn[256];
	char ca[64]; /* path of the certificate of its authority; "": without TLS */
	int port;
};

static inline void server_write_file(const struct server *s, const char *name, const char *text)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	OK(fclose(f));
}

static inline void server_exec(const struct server *s, const char *script, const char *const *more,
			       int in, int out)
{
	const char *argv[6 + SERVER_ARGS_MAX] = {SERVER_PROGRAM, "--stdin", "--dir", s->dir};
	char path[64];
	size_t n = 4;

	if (script != NULL) {
		(void)snprintf(path, sizeof(path), "%s/script", s->dir);
		argv[n++] = "--script";
		argv[n++] = path;
	}
	for (; *more != NULL; more++)
		argv[n++] = *more;
	(void)dup2(in, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)execv(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

/*
 * Starts the server, and waits until it listens. script: the text of a file for --script, or NULL;
 * more: further arguments, fewer than SERVER_ARGS_MAX, then NULL.
 */
static inline void server_start(struct server *s, const char *script, const char *const *more)
{
	char line[1024];
	int in[2], out[2];
	json_t *said;
	const char *dsn, *ca = NULL;
	FILE *f;

	*s = (struct server){.dir = "/tmp/check-ship-XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(s->dir));
	/* ship may run as another user. */
	OK(chmod(s->dir, 0755));
	if (script != NULL)
		server_write_file(s, "script", script);
	OK(pipe2(in, O_CLOEXEC));
	OK(pipe2(out, O_CLOEXEC));
	s->pid = fork();
	ck_assert_int_ge(s->pid, 0);
	if (s->pid == 0)
		server_exec(s, script, more, in[0], out[1]);
	(void)close(in[0]);
	(void)close(out[1]);
	s->input = in[1];

	/* Reads up to the newline: the server must not find its output closed. */
	f = fdopen(out[0], "r");
	ck_assert_ptr_nonnull(f);
	said = fgets(line, sizeof(line), f) == NULL ? NULL : json_loads(line, 0, NULL);
	(void)fclose(f);
	ck_assert_msg(said != NULL, "%s did not start", SERVER_PROGRAM);
	OK(json_unpack(said, "{s:i, s:s, s?s}", "port", &s->port, "dsn", &dsn, "ca", &ca));
	(void)snprintf(s->dsn, sizeof(s->dsn), "%s", dsn);
	if (ca != NULL)
		(void)snprintf(s->ca, sizeof(s->ca), "%s", ca);
	json_decref(said);
}

/* Returns the n-th line of requests.jsonl, from 0, as a new reference; or NULL. */
static inline json_t *server_request(const struct server *s, size_t n)
{
	char path[64];
	json_t *line = NULL;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/requests.jsonl", s->dir);
	f = fopen(path, "r");
	if (f == NULL)
		return NULL;
	for (size_t i = 0; i <= n; i++) {
		json_decref(line);
		line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
	}
	(void)fclose(f);
	return line;
}

/* Returns the text of a file in the server's directory, for the caller to free. */
static inline char *server_read_file(const struct server *s, const char *name, size_t *ret_size)
{
	char path[64];
	char *data;
	long size;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	OK(fseek(f, 0, SEEK_END));
	size = ftell(f);
	ck_assert_int_ge(size, 0);
	rewind(f);
	data = calloc(1, (size_t)size + 1);
	ck_assert_ptr_nonnull(data);
	ck_assert_uint_eq(fread(data, 1, (size_t)size, f), (size_t)size);
	(void)fclose(f);
	*ret_size = (size_t)size;
	return data;
}

static inline int server_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

/* Ends the server, waits for its end, and removes its directory. */
static inline void server_stop(struct server *s)
{
	if (s->pid <= 0)
		return;
	(void)close(s->input);
	(void)waitpid(s->pid, NULL, 0);
	s->pid = 0;
	(void)nftw(s->dir, server_remove, 4, FTW_DEPTH | FTW_PHYS);
}

#endif
