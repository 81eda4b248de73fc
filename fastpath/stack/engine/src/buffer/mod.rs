//! Bytes of sockets in chunks of one pool, so that an idle connection has none.
