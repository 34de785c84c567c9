#compdef sentry-profd sentry-profctl
# Completion of sentry-profd and sentry-profctl in zsh: the options and commands
# that --help-all lists. They are those of the command that PATH finds: ./sentry-profctl may be
# anybody's program.

local help="$(command -- ${words[1]:t} --help-all 2>/dev/null)"

if (( ${words[1,CURRENT-1][(Ie)--]} )); then
	shift ${words[(ie)--]} words
	CURRENT=$#words
	_normal
elif [[ $words[CURRENT] == -* ]]; then
	compadd -- ${(f)"$(sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' <<<$help)"}
elif [[ $words[1] == *profctl && $CURRENT == 2 ]]; then
	compadd -- ${(f)"$(sed -n '/^usage/d; s/^\([a-z][a-z-]*\) .*/\1/p' <<<$help)"}
elif [[ $words[CURRENT-2] == --for ]]; then
	_pids
else
	case $words[CURRENT-1] in
	-p | --pid | stack | record | top | attach | detach | start | stop | doctor | profiler-id)
		_pids
		;;
	*)
		_files
		;;
	esac
fi
