# Device N has 10.9.N.2; 10.9.N.1 is this side's end of it.
up() {
  for n in $(seq 0 $(($1 - 1))); do
    ip2 addr add 10.9.$n.2/24 dev eth$n
    ip2 link set eth$n up
  done
}

# Pings and a file both ways over device $1: what came back differently is said, and ends it.
carry() {
  far=10.9.$1.1
  ping -c 3 -i 0.1 -W 20 $far > /tmp/ping || { cat /tmp/ping; return 1; }
  timeout 100 nc $far 7001 < /data > /tmp/answer || return 1
  grep -qx same /tmp/answer || { echo "eth$1: sent: $(cat /tmp/answer)"; return 1; }
  timeout 100 nc $far 7002 < /dev/null > /tmp/got
  cmp /data /tmp/got || { echo "eth$1: received: $(wc -c < /tmp/got)"; return 1; }
}

# Datagrams there and back over device $1.
exchange() {
  hopscope load udp rr --closed -c 100 --size 1400 --timeout 20s --json 10.9.$1.1:7003 > /tmp/udp
  udp=$?
  tail -n 1 /tmp/udp
  return $udp
}

# TCP in turn: sent over devices 0 and 1, received over 2 and 3, 4 MiB each time; what iperf3 says of it.
stream() {
  for round in $(seq $1); do
    for n in 0 1 2 3; do
      [ $n -lt 2 ] && way= || way=-R
      iperf3 -c 10.9.$n.1 -n 4M -f m $way > /tmp/iperf || { cat /tmp/iperf; return 1; }
      echo "device $n: $(grep receiver /tmp/iperf)"
    done
  done
}

# Datagrams of 64 bytes over devices 4 and 5 in turn, at a steady rate.
datagrams() {
  for round in $(seq $1); do
    for n in 4 5; do
      hopscope load udp stream --rate 6000 --size 64 -c 6000 10.9.$n.1:7006 || return 1
    done
  done
}

# Boots again as an init does it: the $1 devices go down first. A driver whose queue shutting down breaks amid a packet
# may spin in Linux 6.1.0-56 (mended by e13b6da7045f and 0d0eff39ceb3 in virtio_net and virtio_ring).
restart() {
  for n in $(seq 0 $(($1 - 1))); do
    ip2 link set eth$n down
  done
  reboot -f
  sleep 300
}

# Boots again at once, amid whatever goes on; no driver is told.
cut_off() {
  echo b > /proc/sysrq-trigger
  sleep 300
}
