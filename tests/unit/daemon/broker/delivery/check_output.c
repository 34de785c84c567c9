/* The directory for envelopes: what remains of it when it cannot be used. */
#include "daemon/broker/delivery/output.h"

#include <stdio.h>

#include "tests/unit/daemon/full.h"
#include "tests/unit/suite.h"

static char path[PATH_MAX];
static struct output o;

static void set_up(void)
{
	(void)snprintf(path, sizeof(path), "%s/new", suite_directory());
}

static bool exists(void)
{
	return access(path, F_OK) == 0;
}

FIXTURE(set_up, NULL)

TEST(a_directory_that_was_made_is_removed_if_it_is_empty)
{
	OK(output_open(&o, path));
	ck_assert(exists());
	output_close(&o);
	ck_assert(!exists());
}

TEST(a_directory_that_was_there_stays)
{
	OK(output_open_private(&o, path));
	close_fd(&o.dir_fd);
	OK(output_open(&o, path));
	output_close(&o);
	ck_assert(exists());
	ck_assert_int_eq(output_open_private(&o, path), -EEXIST);
	ck_assert(exists());
}

/* There is a descriptor for the directory, and none for a file in it. */
TEST(a_new_directory_in_which_no_file_can_be_made_is_removed)
{
	struct full full;
	int r;

	full_but(&full, 1);
	r = output_open(&o, path);
	ck_assert(!exists());
	full_end(&full);
	ck_assert_int_eq(r, -EMFILE);
	ck_assert_int_eq(o.dir_fd, -1);
}

TEST(a_private_directory_that_cannot_be_opened_is_removed)
{
	struct full full;
	int r;

	full_but(&full, 0);
	r = output_open_private(&o, path);
	ck_assert(!exists());
	full_end(&full);
	ck_assert_int_eq(r, -EMFILE);
	ck_assert_int_eq(o.dir_fd, -1);
}
