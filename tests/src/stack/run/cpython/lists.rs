//! Which of them are run: those that use sockets of IP.

/// In one process; of each kind of socket, and of waiting. Few sleep.
pub(super) const SOME: &str = "\
    test_select test_epoll test_selectors test_socket.BasicTCPTest test_socket.BasicTCPTest2 test_socket.BasicUDPTest \
    test_socket.NonBlockingTCPTests test_socket.TCPTimeoutTest test_socket.UDPTimeoutTest test_socket.TCPCloserTest \
    test_socket.BufferIOTest test_socket.FileObjectClassTestCase test_socket.UnbufferedFileObjectClassTestCase \
    test_socket.NetworkConnectionNoServer test_socket.NetworkConnectionAttributesTest \
    test_socket.NetworkConnectionBehaviourTest test_socket.CreateServerTest test_socket.CreateServerFunctionalTest \
    test_socket.SendfileUsingSendfileTest test_socket.InheritanceTest test_socket.ContextManagersTest \
    test_socket.SendmsgTCPTest test_socket.RecvmsgTCPTest test_socket.RecvmsgIntoTCPTest test_socket.SendmsgUDPTest \
    test_socket.RecvmsgUDPTest test_socket.SendmsgUDP6Test test_socket.RecvmsgUDP6Test \
    test_socket.RecvmsgRFC3542AncillaryUDP6Test";

/// In a process each.
pub(super) const SOCKETS: &str = "test_socket test_select test_selectors test_poll test_epoll test_socketserver \
    test_asyncore test_asynchat test_os.TestSendfile test_eintr";
pub(super) const PROTOCOLS: &str = "test_ssl test_ftplib test_poplib test_imaplib test_nntplib test_smtplib \
    test_telnetlib test_httplib test_httpservers test_urllib2_localnet test_xmlrpc test_docxmlrpc test_robotparser \
    test_logging test_pydoc.PydocServerTest";
pub(super) const ASYNCIO: &str = "test_asyncio.test_base_events test_asyncio.test_buffered_proto \
    test_asyncio.test_events test_asyncio.test_selector_events test_asyncio.test_sendfile test_asyncio.test_server \
    test_asyncio.test_sock_lowlevel test_asyncio.test_ssl test_asyncio.test_sslproto test_asyncio.test_streams \
    test_asyncio.test_subprocess test_asyncio.test_unix_events";
