# up NAME COMMAND…: starts a server that makes /tmp/ready-NAME; says "up NAME", or "down NAME" and its last words.
up() {
  name=$1
  shift
  "$@" --ready-file "/tmp/ready-$name" > "/tmp/out-$name" 2> "/tmp/err-$name" &
  echo $! >> /tmp/pids
  while [ ! -e "/tmp/ready-$name" ]; do
    kill -0 $! 2> /dev/null || { down "$name"; return 1; }
    sleep 0.05
  done
}

down() {
  echo "down $1 $(tail -n 1 "/tmp/err-$1")"
}

overflows() {
  awk '/^TcpExt:/ && !known { split($0, name); known = 1; next }
    /^TcpExt:/ { for (i in name) if (name[i] == "ListenOverflows") print $i }' /proc/net/netstat
}

# Standing connections.
stand() { # NAME PORT CONNECTIONS SIZE MILLISECONDS
  echo "standing $1 $3 $(ask 127.0.0.1 "$2" "$3" "$4" "$5" 2>&1)"
}

# Clients released together; RST at the end: the ports of one round are free for the next. An emulator on a busy
# machine takes ten seconds where it takes one on an idle one: only what hangs takes longer than the time-out.
release() { # NAME PORT CLIENTS SIZE
  before=$(overflows)
  said=$(hopscope -q load tcp echo "127.0.0.1:$2" -n "$3" --size "$4" --close reset --timeout 100s --json 2>&1 | tail -n 1)
  echo "released $1 $(($(overflows) - before)) $said"
}
