#!/bin/sh
# Makes the Debian packages from a staged make install: sentry-profd, and sentry-profd-oracle,
# which is a second tracer and so is not on each host.
# Usage: systemd/deb/build.sh DIR VERSION OUTPUT-DIR [ARCHITECTURE]
#
# DIR is the DESTDIR of make install. Needs only dpkg-deb and dpkg-shlibdeps;
# debhelper would need a debian/ directory at the top and a hundred packages.
# ARCHITECTURE, as dpkg calls it, is given after a cross build: then the file
# depends-ARCHITECTURE has the packages of the libraries. STRIP: the command.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=$(cd "$1" && pwd)
version=$2
output=$3
architecture=${4-$(dpkg --print-architecture)}
list=${4:+$here/depends-$4}
doc=$dir/usr/share/doc/sentry-profd

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: sentry-profd\n\nPackage: sentry-profd\nArchitecture: any\n' \
	>"$work/debian/control"

# The same by the list. A library that the list lacks is an error.
depends_by_list()
{
	readelf -d "$@" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u >"$work/needed"
	while read -r library; do
		sed -n "s/^$library //p" "$list" | grep . || {
			echo "$0: $list has no package of $library" >&2
			return 1
		}
	done <"$work/needed" >"$work/depends"
	sort -u "$work/depends" | paste -s -d , | sed 's/,/, /g'
}

# Prints the packages, with versions, on which the files depend.
depends()
{
	if [ -n "$list" ]; then
		depends_by_list "$@"
		return
	fi
	(cd "$work" && dpkg-shlibdeps -O "$@" >depends)
	sed -n 's/^shlibs:Depends=//p' "$work/depends" | grep .
}

# pack NAME CONTROL DIR DEPENDS: DIR has the files of the package, and in DEBIAN those for dpkg,
# except for those that are made here.
pack()
{
	mkdir -p "$3/DEBIAN"
	[ ! -e "$here/$1.lintian-overrides" ] || install -D -m 644 \
		"$here/$1.lintian-overrides" "$3/usr/share/lintian/overrides/$1"
	(cd "$3" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' \
		-printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$3/DEBIAN/md5sums"
	sed -e "s|@VERSION@|$version|; s|@DEPENDS@|$4|; s|@ARCHITECTURE@|$architecture|" \
		-e "s|@SIZE@|$(du -sk --exclude=DEBIAN "$3" | cut -f 1)|" \
		"$here/$2" >"$3/DEBIAN/control"
	chmod -R go-w,a+rX "$3"
	find "$3/etc" -type f -exec chmod 600 {} + 2>/dev/null || true
	dpkg-deb --root-owner-group --build "$3" "$output/$1_${version}_$architecture.deb"
}

executables=$(find "$dir" -type f -perm -100 ! -name '*.py' ! -name '*.so*')
libraries=$(find "$dir" -type f -name '*.so*')
[ -n "$executables" ] && [ -n "$libraries" ] || {
	echo "$0: nothing is installed in $dir" >&2
	exit 1
}
# dpkg-shlibdeps knows the root of a package by it.
install -d "$dir/DEBIAN"
oracle=$work/oracle
path=usr/libexec/sentry-profd/sentry-profd-oracle
oracle_depends=$(depends "$dir/$path")
# shellcheck disable=SC2046,SC2086
main_depends=$(depends $(echo "$executables" | grep -v /sentry-profd-oracle) $libraries)

# shellcheck disable=SC2086
${STRIP-strip} --strip-unneeded --remove-section=.comment --remove-section=.note \
	$executables $libraries
find "$dir" -name '*.a' -exec ${STRIP-strip} --strip-debug --remove-section=.comment {} +
find "$dir/usr/share/man" -type f ! -name '*.gz' -exec gzip -9n {} +

mkdir -p "$oracle/usr/share/doc" "$oracle/${path%/*}"
mv "$dir/$path" "$oracle/$path"
ln -s sentry-profd "$oracle/usr/share/doc/sentry-profd-oracle"
pack sentry-profd-oracle control-oracle "$oracle" "$oracle_depends"

# dpkg requires this form of a changelog; the changes themselves are in NEWS.
maintainer=$(sed -n 's/^Maintainer: //p' "$here/control")
day=$(date -R -u -r "$doc/CHANGES")
[ -z "${SOURCE_DATE_EPOCH-}" ] || day=$(date -R -u -d "@$SOURCE_DATE_EPOCH")
printf '%s (%s) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- %s  %s\n' \
	sentry-profd "$version" "$maintainer" "$day" >"$doc/changelog"
mv "$doc/CHANGES" "$doc/NEWS"
gzip -9nf "$doc/changelog" "$doc/NEWS"
install -m 644 "$here/copyright" "$doc"
rm "$doc/LICENSE" # copyright has it

for script in postinst prerm postrm; do
	install -m 755 "$here/$script" "$dir/DEBIAN"
done
echo 'activate-noawait ldconfig' >"$dir/DEBIAN/triggers"
(cd "$dir" && find etc -type f -printf '/%p\n' 2>/dev/null || true) \
	>"$dir/DEBIAN/conffiles"
# shellcheck disable=SC2086
soname=$(readelf -d $libraries | sed -n 's/.*(SONAME).*\[\(.*\)\.so\.\(.*\)\]/\1 \2/p')
echo "$soname sentry-profd (>= $version)" >"$dir/DEBIAN/shlibs"
pack sentry-profd control "$dir" "$main_depends"
