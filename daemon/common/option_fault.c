#include "daemon/common/option_fault.h"

#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "lib/base/util.h"

#define WORD_MAX  32
#define NAMES_MAX 64

/* The edit distance of two words of at most WORD_MAX bytes (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];
	const size_t n = strlen(a), m = strlen(b);

	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			const size_t change = a[i - 1] != b[j - 1];

			d[i][j] = min_size(d[i - 1][j], d[i][j - 1]) + 1;
			d[i][j] = min_size(d[i][j], d[i - 1][j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = min_size(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

bool option_full_names(const char *command, const char *value, bool *ret_full)
{
	*ret_full = strcmp(value, "full") == 0;
	if (*ret_full || strcmp(value, "short") == 0)
		return true;
	log_error("%s: --names %s: not short or full", command, value);
	return false;
}

const char *option_nearest(const char *word, const char *const *names, size_t n)
{
	const char *nearest = NULL;
	size_t least;

	if (strlen(word) > WORD_MAX)
		return NULL;
	least = strlen(word) / 3 + 1;
	for (size_t i = 0; i < n; i++) {
		const size_t d = strlen(names[i]) > WORD_MAX ? least : distance(word, names[i]);

		if (d >= least)
			continue;
		least = d;
		nearest = names[i];
	}
	return nearest;
}

static const char *nearest_long(const char *word, const struct option *known)
{
	const char *names[NAMES_MAX];
	size_t n = 0;

	for (; n < array_size(names) && known[n].name != NULL; n++)
		names[n] = known[n].name;
	return option_nearest(word, names, n);
}

void option_fault(int result, char *const *argv, const struct option *known,
		  struct option_fault *ret)
{
	const char *word = argv[optind - 1], *nearest = NULL, *problem;
	const bool is_letter = optopt != 0 && optopt < OPTION_LONG;

	/* The word can have more letters than the refused one. */
	if (is_letter)
		(void)snprintf(ret->option, sizeof(ret->option), "-%c", optopt);
	else
		(void)snprintf(ret->option, sizeof(ret->option), "%.*s", (int)strcspn(word, "="),
			       word);
	problem = result == ':'		  ? "needs a value"
		  : optopt >= OPTION_LONG ? "takes no value"
					  : "not known";
	if (optopt == 0 && result == '?')
		nearest = nearest_long(ret->option + strlen("--"), known);
	(void)snprintf(ret->problem, sizeof(ret->problem), "%s%s%s%s", problem,
		       nearest != NULL ? ": did you mean --" : "", nearest != NULL ? nearest : "",
		       nearest != NULL ? "?" : "");
}

int option_next(const char *command, int argc, char *const *argv, const char *letters,
		const struct option *known, int *ret_index)
{
	struct option_fault fault;
	int result;

	/* Otherwise getopt prints its own error line. */
	opterr = 0;
	result = getopt_long(argc, argv, letters, known, ret_index);
	if (result != '?' && result != ':')
		return result;
	option_fault(result, argv, known, &fault);
	log_error("%s: %s: %s (--help shows the usage)", command, fault.option, fault.problem);
	return '?';
}
