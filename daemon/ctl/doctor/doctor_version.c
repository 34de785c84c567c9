/*
 * The versions of sentry-profctl, of the sentry-profd-unwind that it finds, and of the libdw that
 * sentry-profd-unwind links.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/version.h"
#include "daemon/ctl/common/profd_child.h"
#include "daemon/ctl/doctor/doctor_checks.h"
#include "lib/base/buf.h"

#define UNWIND "sentry-profd-unwind"
/* More than two lines of --version. */
#define TEXT_MAX 4096

/* Appends what `sentry-profd-unwind --version` prints. Returns 0 or -errno. */
static int ask_unwind(struct buf *text)
{
	static char name[] = UNWIND, version[] = "--version";
	char *const argv[] = {name, version, NULL};
	struct profd_child unwind = {.log_fd = -1};
	int out[2], r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	r = profd_child_start(&unwind, argv, out[1], NULL, NULL);
	close_fd(&out[1]);
	if (r == 0)
		r = buf_read_fd(text, out[0]);
	close_fd(&out[0]);
	if (r == 0 && text->len == 0) {
		/* The dynamic linker, for example, names the library that it does not find. */
		profd_child_show_log(&unwind);
		r = -ENODATA;
	}
	(void)profd_child_wait(&unwind);
	return r;
}

/* text: a line for the executable and one for libdw. */
static void compare(struct doctor *d, char *text)
{
	static const char name[] = UNWIND " ";
	char *library = strchr(text, '\n');

	if (library == NULL || strncmp(text, name, strlen(name)) != 0) {
		doctor_say(d, FINDING_FAULT, "version",
			   UNWIND " is another program: it prints '%s'", text);
		return;
	}
	*library++ = '\0';
	library[strcspn(library, "\n")] = '\0';
	if (strcmp(text + strlen(name), version_text) != 0)
		doctor_say(d, FINDING_WARNING, "version",
			   "%s, %s: another build than sentry-profctl: install all programs of "
			   "sentry-profd in the same version",
			   text, library);
	else
		doctor_say(d, FINDING_OK, "version", "%s, %s", text, library);
}

void doctor_version(struct doctor *d)
{
	struct buf text;
	int r;

	doctor_say(d, FINDING_OK, "version", "sentry-profctl %s", version_text);
	buf_init(&text, TEXT_MAX);
	r = ask_unwind(&text);
	if (r < 0)
		doctor_say(d, FINDING_FAULT, "version", "cannot ask " UNWIND " for its version: %s",
			   strerror(-r));
	else
		compare(d, text.data);
	buf_fini(&text);
}
