//! Below TCP and UDP: addresses, routes, neighbours, fragments, ICMP.
