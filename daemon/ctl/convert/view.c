#include "daemon/ctl/convert/view.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/output_format.h"
#include "daemon/ctl/common/private_daemon.h"
#include "daemon/ctl/convert/convert.h"

const char view_help[] =
	"\n"
	"view IN...  write profiles as an HTML page to a temporary file and open it in\n"
	"            the browser; if IN is such a page, open it\n"
	"\n"
	"  --no-open             print the path of the page, but do not open it\n";

static bool parse(int argc, char **argv, bool *ret_opens)
{
	enum { NO_OPEN = OPTION_LONG };
	static const struct option options[] = {
		{"no-open", no_argument, NULL, NO_OPEN},
		{0},
	};
	int option;

	*ret_opens = true;
	while ((option = option_next(argv[0], argc, argv, ":", options, NULL)) != -1) {
		if (option != NO_OPEN)
			return false;
		*ret_opens = false;
	}
	if (optind < argc)
		return true;
	log_error("view: no input: name files or a directory that "
		  "sentry-profd has written");
	return false;
}

static bool is_page(const char *path)
{
	struct stat st;

	return output_format_of_path(path) == &output_formats[OUTPUT_FORMAT_HTML] &&
	       stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Writes the page to a new file with a random name and mode 0600 (mkostemps(3)). */
static int make_page(char *const *paths, size_t n, char ret[PATH_MAX])
{
	const char *dir = common_temporary_directory();
	const int length = snprintf(ret, PATH_MAX, "%s/sentry-profile-XXXXXX%s", dir,
				    output_formats[OUTPUT_FORMAT_HTML].suffix);
	FILE *out = NULL;
	int fd = -1, r;

	if (length < PATH_MAX)
		fd = mkostemps(ret, (int)strlen(output_formats[OUTPUT_FORMAT_HTML].suffix),
			       O_CLOEXEC);
	else
		errno = ENAMETOOLONG;
	if (fd >= 0)
		out = fdopen(fd, "w");
	if (out == NULL) {
		log_error("cannot make a file in %s: %s", dir, strerror(errno));
		close_fd(&fd);
		return -EIO;
	}
	r = convert_page(paths, n, out, ret);
	if (fclose(out) != 0 && r == 0) {
		r = -errno;
		log_error("writing %s failed: %s", ret, strerror(-r));
	}
	if (r < 0)
		(void)unlink(ret);
	return r;
}

/* Executes the program in place of this process. Returns only if that fails. */
static void execute(const char *program, const char *page)
{
	char *name = strdup(program), *path = strdup(page);
	char *argv[] = {name, path, NULL};

	if (name != NULL && path != NULL)
		(void)execvp(name, argv);
	free(name);
	free(path);
}

/* Tries the programs of a list "first:second:..." in order. */
static void execute_first(const char *programs, const char *page)
{
	char *names = strdup(programs), *next = names, *name;

	while (names != NULL && (name = strsep(&next, ":")) != NULL)
		if (name[0] != '\0')
			execute(name, page);
	free(names);
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value != NULL && value[0] != '\0';
}

/*
 * Without a display only $BROWSER is tried: xdg-open(1) would start a text browser, which
 * cannot draw the page.
 */
static void open_browser(const char *page)
{
	const char *browser = getenv("BROWSER");

	if (browser != NULL)
		execute_first(browser, page);
	if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
		return;
	execute("xdg-open", page);
	execute("sensible-browser", page);
}

int view_run(int argc, char **argv)
{
	char page[PATH_MAX];
	bool opens;

	if (!parse(argc, argv, &opens))
		return EXIT_USAGE;
	if (optind + 1 == argc && is_page(argv[optind])) {
		if (realpath(argv[optind], page) == NULL) {
			log_error("cannot find the page %s: %s", argv[optind], strerror(errno));
			return EXIT_FAILURE;
		}
	} else if (make_page(argv + optind, (size_t)(argc - optind), page) < 0) {
		return EXIT_FAILURE;
	}
	printf("%s\n", page);
	if (fflush(stdout) != 0) {
		log_error("cannot print the path of the page to standard output: %s",
			  strerror(errno));
		return EXIT_FAILURE;
	}
	if (opens)
		open_browser(page);
	return EXIT_SUCCESS;
}
