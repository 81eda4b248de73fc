# This machine does what the other end of its third serial line says, a line at a time, and then says "end CODE".
stty -F /dev/ttyS2 raw -echo
exec 3<> /dev/ttyS2

# Device N has 10.9.N.2; 10.9.N.1 is at its other end. Nothing but what is measured goes over them: neighbours are
# known, and there is no IPv6.
up() { # COUNT PORT_OF_SINK PORT_OF_ECHO
  echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
  for n in $(seq 0 $(($1 - 1))); do
    ip2 addr add 10.9.$n.2/24 dev eth$n || return 1
    ip2 link set eth$n up || return 1
    ip2 neigh replace 10.9.$n.1 lladdr 02:00:00:00:09:0$n dev eth$n nud permanent || return 1
    virtio=$(readlink /sys/class/net/eth$n/device)
    eval "virtio$n=${virtio##*/}"
  done
  serve sink $2 || return 1
  serve echo $3 || return 1
  [ ! -e /sys/devices/system/clocksource/clocksource0/current_clocksource ] ||
    echo "clock $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
}

serve() { # SERVICE PORT
  hopscope load tcp serve --service $1 --listen 0.0.0.0:$2 --ready-file /tmp/$1 > /tmp/$1.said 2>&1 3>&- &
  while [ ! -e /tmp/$1 ]; do
    kill -0 $! || { cat /tmp/$1.said; return 1; }
    sleep 0.05
  done
}

# What the driver of device N has counted, and the interrupts of its line.
look() { # N
  read -r received < /sys/class/net/eth$1/statistics/rx_packets
  read -r sent < /sys/class/net/eth$1/statistics/tx_packets
  echo "driver $received $sent"
  eval "grep -w \$virtio$1 /proc/interrupts"
}

# Client over device N; code 1 is that some requests failed, which its summary has.
load() { # N WORDS...
  n=$1
  shift
  look $n
  hopscope load "$@" > /tmp/load 2> /tmp/load.err 3>&-
  code=$?
  [ $code -le 1 ] || { tail -n 3 /tmp/load.err; return $code; }
  tail -n 1 /tmp/load
}

# Datagrams there and back over device N, until quiet.
traffic() { # N PORT
  hopscope load udp rr --rate 400 --size 200 --timeout 3s -d 1h --json 10.9.$1.1:$2 > /tmp/traffic 2>&1 3>&- &
  traffic=$!
}

quiet() {
  kill -INT $traffic
  wait $traffic
  tail -n 1 /tmp/traffic
}

echo ready >&3
while read -r line <&3; do
  [ "$line" != leave ] || break
  eval "$line" > /tmp/said 2>&1 < /dev/null
  code=$?
  cat /tmp/said >&3
  echo "end $code" >&3
done
