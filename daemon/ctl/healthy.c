#include "daemon/ctl/healthy.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/control_client.h"
#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "lib/base/buf.h"

/* Timeout of the daemon's answer. A busy machine delays an answer by less. */
#define HEALTHY_S 10

const char healthy_help[] =
	"\n"
	"healthy          exit status 0 if the daemon answers, takes samples and keeps\n"
	"                 its promises; else 1 and a line that says why: for probes\n";

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text == NULL ? "-" : text;
}

bool healthy_judge(const char *json, size_t size, char ret_text[HEALTHY_TEXT_SIZE])
{
	json_t *root = json_loadb(json, size, 0, NULL);
	const json_t *daemon = json_object_get(root, "daemon");
	const json_t *capture_pid = json_object_get(daemon, "capture_pid");
	const json_t *degraded = json_object_get(daemon, "degraded"), *one;
	char text[HEALTHY_TEXT_SIZE] = "";
	size_t i;
	bool ok;

	if (!json_is_integer(capture_pid))
		(void)snprintf(text, sizeof(text), "sentry-profd sends no valid status");
	else if (json_integer_value(capture_pid) == 0)
		(void)snprintf(text, sizeof(text),
			       "sentry-profd-capture does not run, so nothing is sampled (the log "
			       "says why)");
	json_array_foreach(degraded, i, one)
	{
		if (text[0] == '\0' && json_is_true(json_object_get(one, "breaks_promise")))
			(void)snprintf(text, sizeof(text), "%s: %s (%s)", text_of(one, "what"),
				       text_of(one, "effect"), text_of(one, "remedy"));
	}
	ok = text[0] == '\0';
	if (ok && !json_is_array(degraded))
		(void)snprintf(
			text, sizeof(text),
			"this user may not see what sentry-profd lacks: only root and members of "
			"the groups sentry-profd and sentry-profd-view may");
	json_decref(root);
	memcpy(ret_text, text, sizeof(text));
	return ok;
}

/* Asks for the status. The caller calls buf_fini(ret) in any case. Logs why it returns false. */
static bool ask_status(struct control_client *client, struct buf *ret)
{
	struct protocol_answer answer;
	int fd = -1, r;

	buf_init(ret, 0);
	if (control_client_request(client, PROTOCOL_STATUS, 0, NULL, &answer, &fd) < 0)
		return false;
	r = control_client_read(fd, answer.fd_bytes, ret);
	close_fd(&fd);
	if (r < 0)
		log_error("cannot read the status of sentry-profd: %s", strerror(-r));
	return r == 0;
}

static int probe(const char *socket)
{
	char text[HEALTHY_TEXT_SIZE];
	struct control_client client;
	struct buf status;
	bool ok;

	if (control_client_open_briefly(control_client_path(socket), HEALTHY_S, false, &client) < 0)
		return EXIT_FAILURE;
	ok = ask_status(&client, &status);
	if (ok && !healthy_judge(buf_string(&status), status.len, text)) {
		log_error("%s", text);
		ok = false;
	} else if (ok && text[0] != '\0') {
		log_warning("%s", text);
	}
	buf_fini(&status);
	control_client_close(&client);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int healthy_run(int argc, char **argv)
{
	enum { SOCKET = OPTION_LONG };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{0},
	};
	const char *socket = NULL;
	int c;

	while ((c = option_next(argv[0], argc, argv, ":", options, NULL)) != -1) {
		if (c != SOCKET)
			return EXIT_USAGE;
		socket = optarg;
	}
	if (optind < argc) {
		log_error("healthy takes no argument (see --help)");
		return EXIT_USAGE;
	}
	return probe(socket);
}
