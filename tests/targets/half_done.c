/*
 * Stands in for sentry-profctl: writes a part of a file to standard output, says
 * on standard error whether it may make a file where it is, and in /tmp, and
 * whether it reads what is there; then goes on until it is ended.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int can_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return 0;
	close(fd);
	unlink(path);
	return 1;
}

int main(void)
{
	char path[64];
	DIR *here = opendir(".");

	snprintf(path, sizeof(path), "/tmp/half-done-%d", (int)getpid());
	printf("half of it");
	fflush(stdout);
	fprintf(stderr, "half done %d: makes %d %d, reads %d\n", (int)getpid(),
		can_make("made"), can_make(path),
		here != NULL && readdir(here) != NULL);
	for (;;)
		pause();
}
