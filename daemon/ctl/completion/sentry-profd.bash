# Completion of sentry-profd and sentry-profctl in bash: the options and commands
# that --help-all lists. They are those of the command that PATH finds: ./sentry-profctl may be
# anybody's program.

_sentry_profd()
{
	local program=${COMP_WORDS[0]##*/} word=${COMP_WORDS[COMP_CWORD]}
	local before=${COMP_WORDS[COMP_CWORD - 1]} help words=

	if [[ " ${COMP_WORDS[*]:1:COMP_CWORD - 1} " == *" -- "* ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
		return
	fi
	help=$(command -- "$program" --help-all 2>/dev/null)
	if [[ $word == -* ]]; then
		words=$(sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' <<<"$help")
	elif [[ $program == *profctl && $COMP_CWORD == 1 ]]; then
		words=$(sed -n '/^usage/d; s/^\([a-z][a-z-]*\) .*/\1/p' <<<"$help")
	elif [[ $COMP_CWORD -gt 2 && ${COMP_WORDS[COMP_CWORD - 2]} == --for ]]; then
		words=$(cd /proc && echo [0-9]*)
	else
		case $before in
		-p | --pid | stack | record | top | attach | detach | start | stop | doctor | profiler-id)
			words=$(cd /proc && echo [0-9]*)
			;;
		esac
	fi
	# Where there are none: names of files, by -o default.
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o default -F _sentry_profd sentry-profd sentry-profctl
