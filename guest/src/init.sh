#!/bin/busybox sh
# The guest's first process: runs the steps in their order, each with a bound on its time, and
# hands what they said over on the second serial line. "begin NAME", then
# "end NAME CODE BYTES_OF_STDOUT BYTES_OF_STDERR" and those bytes; "release KERNEL" first, "done" last.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for module in /modules/*.ko /nic/*.ko; do
  [ -e "$module" ] && insmod "$module"
done
ip2 link set lo up

# No translation of line ends: what is handed over is counted in bytes.
stty -F /dev/ttyS1 raw -echo
exec 3>/dev/ttyS1
echo "release $(uname -r)" >&3
for step in /steps/*; do
  name=${step##*/}
  echo "begin $name" >&3
  timeout -s KILL STEP_SECONDS sh "$step" >/out 2>/err </dev/null 3>&-
  code=$?
  # A process that the step left running may still write to the files.
  mv /out /out.end
  mv /err /err.end
  echo "end $name $code $(stat -c %s /out.end) $(stat -c %s /err.end)" >&3
  cat /out.end /err.end >&3
done
echo done >&3
# Closing waits until all is sent.
exec 3>&-
poweroff -f
