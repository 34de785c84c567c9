#!/bin/sh
# Makes an emulated aarch64 machine of Debian 12 in a directory: root (which is the sysroot of the
# cross compiler, too), disk.img, linux and initrd.
# Usage: prepare.sh DIR [16k]
#
# 16k: also linux-16k and initrd-16k, the kernel of Debian's backports that has pages of 16 KiB.
#
# Nothing of aarch64 is executed: the packages are only unpacked, and what their scripts would have
# made and the tests need is made here. So neither binfmt_misc nor a foreign architecture in dpkg is
# needed. The packages come from the apt sources of the host; where these have none for arm64, the
# last line says so, and the status is 77. Needs root, and the packages of `deps.sh aarch64`.
#
# Makes a machine again after a change of this file only.
set -eu

script=$(realpath "$0")
dir=$(realpath -m "$1")
root=$dir/root
pages=${2-}
is_prepared=false
! cmp -s "$script" "$dir/prepared" || is_prepared=true
if $is_prepared && { [ "$pages" != 16k ] || [ -e "$dir/linux-16k" ]; }; then
	exit 0
fi

skip()
{
	echo "$*"
	exit 77
}

# What runs in the machine. redis-tools contains redis-server.
machine='bash dash coreutils util-linux mount procps grep sed mawk findutils hostname diffutils
	libc-bin base-files base-passwd passwd login kmod iproute2 python3 busybox-static binutils
	strace gdb redis-tools psmisc openssl ca-certificates'
# What the product and its tests are linked with.
libraries='libc6-dev libgcc-12-dev libstdc++-12-dev linux-libc-dev libdw-dev libelf-dev
	liblzma-dev libzstd-dev libiberty-dev libunwind-dev libjansson-dev
	libcurl4-openssl-dev zlib1g-dev libseccomp-dev libprotobuf-c-dev libncurses-dev
	libmicrohttpd-dev check libev-dev libuv1-dev'

sources=$(apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' \
	'Created-By: Packages' 'Origin: Debian' 2>/dev/null | grep ' bookworm' | sort -u)
[ -n "$sources" ] || skip 'apt has no sources of Debian 12, which has packages for arm64'

# unpack PACKAGES DIR [OPTION]: with all on which they depend.
unpack()
{
	mmdebstrap --quiet --architectures=arm64 --variant=extract --mode=root \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
		--include="$(echo $1 | tr ' ' ,)" ${3+"$3"} bookworm "$2" - || skip 'the packages for arm64 cannot be had'
}

# Debian's kernel has drivers of disks, ext4 and 9p as modules, and what finds the peer of a socket.
# In the order in which they need each other. A kernel has some of them built in.
names='virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk crc16 mbcache jbd2
	crc32c_generic ext4 netfs fscache 9pnet 9pnet_virtio 9p virtio-rng unix_diag'

# make_boot ROOT SUFFIX: moves the kernel of ROOT to linux and makes initrd of its modules.
make_boot()
{
	initial=$dir/initial
	mkdir -p "$initial/bin" "$initial/mod" "$initial/proc" "$initial/sys" "$initial/dev" \
		"$initial/new"
	mv "$1"/boot/vmlinuz-* "$dir/linux$2"
	cp "$root/usr/bin/busybox" "$initial/bin"
	for name in $names; do
		find "$1"/usr/lib/modules/*/kernel -name "$name.ko*" -exec cp {} "$initial/mod" \;
	done
	find "$initial/mod" -name '*.xz' -exec xz -d {} +
	cat >"$initial/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for name in $(echo $names); do [ ! -e /mod/\$name.ko ] || insmod /mod/\$name.ko; done
mount -o noatime /dev/vda /new
for d in proc sys dev; do mount --move /\$d /new/\$d; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 out /new/out
exec switch_root /new /out/vm-init
END
	chmod +x "$initial/init"
	(cd "$initial" && find . | cpio --quiet -o -H newc) | gzip -1 >"$dir/initrd$2"
	rm -r "$initial"
}

make_16k()
{
	(echo "$sources"; echo "$sources" | sed -n 's/ bookworm / bookworm-backports /p') |
		unpack linux-image-arm64-16k "$dir/16k" \
			'--aptopt=APT::Default-Release "bookworm-backports"'
	make_boot "$dir/16k" -16k
	rm -r "$dir/16k"
}

if $is_prepared; then
	make_16k
	exit
fi
rm -rf "$dir"
mkdir -p "$dir"
echo "$sources" | unpack "$machine $libraries linux-image-arm64" "$root"
cd "$root"
# A linker on the host would follow an absolute link on the host.
find . -xdev -type l -lname '/*' -printf '%p %l\n' | while read -r link to; do
	[ ! -e ".$to" ] || ln -sfn "$(realpath -m --relative-to="${link%/*}" ".$to")" "$link"
done
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
# For su.
for kind in account auth password session; do
	echo "$kind sufficient pam_permit.so" >"etc/pam.d/common-$kind"
done
echo '127.0.0.1 localhost' >etc/hosts
ln -s mawk usr/bin/awk
ln -sf dash usr/bin/sh
mkdir out src
make_boot "$root" ""

# The disk has what runs; the sysroot keeps the rest.
mkdir ../disk
tar -c --exclude='./usr/lib/modules' --exclude='./usr/share/doc' --exclude='./usr/share/man' \
	--exclude='./usr/share/locale' --exclude='./usr/include' --exclude='*.a' \
	--exclude='./boot' --exclude='./var' . | tar -x -C ../disk
mkdir -p ../disk/var/tmp
chmod 1777 ../disk/tmp ../disk/var/tmp
mkfs.ext4 -q -F -O ^has_journal -d ../disk ../disk.img 4G
rm -r ../disk usr/lib/modules
[ "$pages" != 16k ] || make_16k
cp "$script" ../prepared
