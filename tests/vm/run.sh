#!/usr/bin/env bash
# Boots a virtual machine with a Soft-RoCE device and runs the conformance tests of the transport `verbs` in it.
# usage: tests/vm/run.sh PYTHON [PYTEST ARGUMENTS]
# Exit status 77 means that Debian's packages are not available, so nothing was tested.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$PWD/$1
shift
work=$PWD/.work/vm
LIMIT_S=900

cannot() {
  echo "$*: run 'apt-get update' first" >&2
  exit 77
}

. dev/debian.sh
kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ {print $2; exit}')
[[ -n $kernel ]] || cannot "apt knows no kernel"
fetch "$work/kernel" "$kernel" busybox-static || cannot "apt has no kernel"
fetch "$work/guest" python3-pyverbs libibverbs1 ibverbs-providers librdmacm1 libnl-3-200 libnl-route-3-200 iproute2 libbpf1 \
  libelf1 libmnl0 libcap2 || cannot "apt has no pyverbs"
qemu=qemu-system-x86_64
firmware=()
if ! command -v $qemu >/dev/null; then
  mapfile -t packages < <(missing_packages qemu-system-x86)
  fetch "$work/qemu" "${packages[@]}" || cannot "apt has no QEMU"
  qemu=$work/qemu/usr/bin/$qemu
  libraries=$work/qemu/usr/lib/x86_64-linux-gnu
  export QEMU_MODULE_DIR=$libraries/qemu
  firmware=(-L "$work/qemu/usr/share/qemu" -L "$work/qemu/usr/share/seabios" -L "$work/qemu/usr/lib/ipxe/qemu")
fi
python3 tests/vm/initramfs.py "$work/kernel" "$work/kernel/bin/busybox" tests/vm/init.sh "$work/initramfs.gz"

out=$work/out
rm -rf "$out"
mkdir "$out"
guest=$work/guest
cat >"$out/run" <<RUN
set -eu
export LD_LIBRARY_PATH=$guest/usr/lib/x86_64-linux-gnu:$guest/usr/lib/x86_64-linux-gnu/libibverbs:$guest/lib/x86_64-linux-gnu
export RDMAV_DRIVERS=rxe PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$guest/usr/lib/python3/dist-packages PENSTOCK_TEST_TRANSPORTS=verbs PENSTOCK_TEST_PATIENCE=6
rdma=$guest/usr/bin/rdma
[ -x \$rdma ] || rdma=$guest/bin/rdma
[ -x \$rdma ] || rdma=$guest/sbin/rdma
\$rdma link add rxe0 type rxe netdev dummy0
cd $PWD
$python -m pytest -p no:cacheprovider --basetemp=/dev/shm/tmp/pytest -v --junitxml=/mnt/out/vm.xml tests/python/unit/transport $*
RUN
LD_LIBRARY_PATH=${libraries:+$libraries:$work/qemu/lib/x86_64-linux-gnu:$libraries/pulseaudio} timeout $LIMIT_S "$qemu" "${firmware[@]}" \
  -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nographic -no-reboot -nic none \
  -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/initramfs.gz" \
  -append "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off random.trust_cpu=on" \
  -virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
  -virtfs local,path="$out",mount_tag=out,security_model=none \
  </dev/null >"$work/console" 2>&1 || true
cat "$out/log" 2>/dev/null || tail -50 "$work/console"
[[ -e $out/status ]] || {
  echo "the virtual machine did not end within $LIMIT_S s" >&2
  exit 1
}
exit "$(cat "$out/status")"
