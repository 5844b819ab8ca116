#!/bin/sh
# The first process of the virtual machine. It sets up a dummy network device for RDMA, runs the script `run` of the
# shared folder in the file system of the host, writes its exit status to that folder, and switches the machine off.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /mods/*.ko; do insmod "$module" || echo "no module $module"; done
ip link set lo up
ip link add dummy0 type dummy
ip addr add 10.77.0.1/24 dev dummy0
ip link set dummy0 mtu 4200
ip link set dummy0 up
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro root /newroot
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288 out /out
mount -t tmpfs tmpfs /newroot/run
mount -t tmpfs tmpfs /newroot/mnt
mkdir /newroot/mnt/out
mount --bind /out /newroot/mnt/out
mount --bind /dev /newroot/dev
mkdir -p /newroot/dev/shm
mount -t tmpfs shm /newroot/dev/shm
# Not mounted over /tmp, because the tests may be in a folder below it.
mkdir /newroot/dev/shm/tmp
mount --bind /proc /newroot/proc
mount --bind /sys /newroot/sys
chroot /newroot /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/dev/shm/tmp TMPDIR=/dev/shm/tmp bash /mnt/out/run >/out/log 2>&1
echo $? >/out/status
sync
poweroff -f
