# available.pl MS: what available.py does, in Perl.
use strict;
use warnings;
use IO::Socket::INET;
use Time::HiRes qw(time);

use constant FIONREAD => 0x541B;    # asm-generic/ioctls.h

sub ready {
    my $bits = '';
    vec($bits, fileno($_[0]), 1) = 1;
    return select($bits, undef, undef, 0);
}

sub available {
    my $answer = pack('i', -1);
    ioctl($_[0], FIONREAD, $answer) or die "ioctl: $!";
    return unpack('i', $answer);
}

sub take {
    my ($end, $size) = @_;
    while ($size) {
        $size -= sysread($end, my $bytes, $size) // 0;
    }
}

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $listener->sockport) or die "connect: $!";
my $server = $listener->accept or die "accept: $!";
$client->blocking(0);
$server->blocking(0);
my $until = time + $ARGV[0] / 1000;
my ($rounds, $sent, $asked, $wrong) = (0, 0, 0, 0);
while (time < $until) {
    for my $pair ([$client, $server], [$server, $client]) {
        syswrite($pair->[0], 'x' x 100) == 100 or die "send: $!";
        take($pair->[1], 100);
    }
    $rounds++;
}
while (my $more = syswrite($client, 'x' x 5000)) {
    $sent += $more;
}
while ($sent) {
    next unless ready($server);
    $asked++;
    $wrong++ if available($server) <= 0;
    $sent -= sysread($server, my $bytes, 3000);
}
print "{\"rounds\": $rounds, \"asked\": $asked, \"wrong\": $wrong}\n";
