# Numbered messages there and back between two network namespaces, over TCP and UDP, IPv4 and IPv6.
# What each end knows of each message goes to /truth/PROTOCOL-FAMILY.
net() {
  ip2 netns add left
  ip2 netns add right
  ip2 link add near netns left type veth peer name far netns right
  for end in "left near 1" "right far 2"; do
    set -- $end
    ip2 -n $1 addr add 10.77.0.$3/24 dev $2
    ip2 -n $1 addr add fd77::$3/64 dev $2 nodad
    ip2 -n $1 link set $2 up
  done
}

exchange_all() {
  mkdir -p /truth
  for protocol in tcp udp; do
    for address in 4:10.77.0.2 6:fd77::2; do
      truth=/truth/$protocol-${address%%:*}
      ip2 netns exec right exchange $protocol server ${address#*:} 7711 > $truth.server
      ip2 netns exec left exchange $protocol client ${address#*:} 7711 $1 > $truth
      # The server ends by itself when the client has said so.
      while ! tail -n 1 $truth.server | grep -q "^sent $(($1 - 1)) server"; do :; done
      cat $truth.server >> $truth
    done
  done
}

# `hopscope slice` with these arguments, attached when this returns; what it says is kept for `stop`. The guest has one
# processor: who looks without a pause takes half of it.
start() {
  rm -f /ready
  hopscope -q slice --no-calibration --ready-file /ready "$@" > /sliced &
  echo $! > /pid
  until [ -e /ready ]; do
    kill -0 $! 2> /dev/null || { wait $!; return; }
    sleep 0.1
  done
}

stop() {
  kill -INT "$(cat /pid)"
  while kill -0 "$(cat /pid)" 2> /dev/null; do sleep 0.1; done
  cat /sliced
}
