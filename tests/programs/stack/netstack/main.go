// A TCP peer on gVisor's netstack, beside no kernel socket: it has an address of its own on one end of a veth pair.
//
//	peer serve DEVICE ADDRESS/LEN PORT [no-rack]          echoes; prints "listening"
//	peer send  DEVICE ADDRESS/LEN PEER:PORT N [no-rack]   sends N bytes of a known sequence, checks that they come back, prints a line of JSON
//
// no-rack: RFC 6675 and time-outs instead of RACK-TLP. With it this netstack stands still where the last segment and the tail loss probe for it
// are lost while it counts nothing as outstanding: then no timer is set (snd.go, postXmit, "if s.Outstanding > 0"). Seen in captures: the
// segment leaves twice, the path drops both, and no third comes in minutes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

func fail(what string, err any) {
	fmt.Fprintf(os.Stderr, "peer: %s: %v\n", what, err)
	os.Exit(2)
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }

func netstack(device, cidr string, rack bool) *stack.Stack {
	iface, err := net.InterfaceByName(device)
	if err != nil {
		fail(device, err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_ALL)))
	if err != nil {
		fail("packet socket", err)
	}
	address := &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: iface.Index}
	if err := unix.Bind(fd, address); err != nil {
		fail("binding to "+device, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		fail("packet socket", err)
	}
	// Not the device's own: the kernel would answer for it.
	mac := append(net.HardwareAddr{}, iface.HardwareAddr...)
	link, err := fdbased.New(&fdbased.Options{
		FDs: []int{fd}, MTU: uint32(iface.MTU), EthernetHeader: true,
		Address: tcpip.LinkAddress(mac), PacketDispatchMode: fdbased.RecvMMsg,
	})
	if err != nil {
		fail("link", err)
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack)
	if !rack {
		recovery := tcpip.TCPRecovery(0)
		s.SetTransportProtocolOption(tcp.ProtocolNumber, &recovery)
	}
	if err := s.CreateNIC(1, link); err != nil {
		fail("NIC", err)
	}
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		fail(cidr, err)
	}
	protocol := ipv4.ProtocolNumber
	if prefix.Addr().Is6() {
		protocol = ipv6.ProtocolNumber
	}
	own := tcpip.ProtocolAddress{
		Protocol: protocol,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address: tcpip.AddrFromSlice(prefix.Addr().AsSlice()), PrefixLen: prefix.Bits(),
		},
	}
	if err := s.AddProtocolAddress(1, own, stack.AddressProperties{}); err != nil {
		fail("address", err)
	}
	s.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: 1}, {Destination: header.IPv6EmptySubnet, NIC: 1},
	})
	return s
}

func full(address string) (tcpip.FullAddress, tcpip.NetworkProtocolNumber) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		fail(address, err)
	}
	protocol := ipv4.ProtocolNumber
	if parsed.Addr().Is6() {
		protocol = ipv6.ProtocolNumber
	}
	return tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFromSlice(parsed.Addr().AsSlice()), Port: parsed.Port()}, protocol
}

func serve(s *stack.Stack, cidr, port string) {
	prefix, _ := netip.ParsePrefix(cidr)
	own, protocol := full(net.JoinHostPort(prefix.Addr().String(), port))
	listener, err := gonet.ListenTCP(s, own, protocol)
	if err != nil {
		fail("listening", err)
	}
	fmt.Println("listening")
	for {
		connection, err := listener.Accept()
		if err != nil {
			fail("accepting", err)
		}
		go func() {
			io.Copy(connection, connection)
			connection.Close()
		}()
	}
}

func send(s *stack.Stack, peer string, count int64) {
	to, protocol := full(peer)
	wait, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	connection, err := gonet.DialContextTCP(wait, s, to, protocol)
	if err != nil {
		fail("connecting to "+peer, err)
	}
	go func() {
		if _, err := io.CopyN(connection, rand.New(rand.NewSource(7)), count); err != nil {
			fail("sending", err)
		}
		connection.CloseWrite()
	}()
	expected := rand.New(rand.NewSource(7))
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	var received int64
	for {
		n, err := connection.Read(got)
		expected.Read(want[:n])
		if string(got[:n]) != string(want[:n]) {
			fail("checking", fmt.Sprintf("other bytes after %d", received))
		}
		received += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			fail("receiving", err)
		}
	}
	connection.Close()
	stats := s.Stats().TCP
	line, _ := json.Marshal(map[string]any{
		"sent": count, "received": received, "retransmits": stats.Retransmits.Value(),
		"timeouts": stats.Timeouts.Value(), "checksum_errors": stats.ChecksumErrors.Value(),
	})
	fmt.Println(string(line))
	if received != count {
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 5 {
		fail("usage", "peer serve DEVICE ADDRESS/LEN PORT [no-rack] | peer send DEVICE ADDRESS/LEN PEER:PORT BYTES [no-rack]")
	}
	s := netstack(os.Args[2], os.Args[3], os.Args[len(os.Args)-1] != "no-rack")
	switch os.Args[1] {
	case "serve":
		serve(s, os.Args[3], os.Args[4])
	case "send":
		count, err := strconv.ParseInt(os.Args[5], 10, 64)
		if err != nil {
			fail("bytes", err)
		}
		send(s, os.Args[4], count)
	}
}
