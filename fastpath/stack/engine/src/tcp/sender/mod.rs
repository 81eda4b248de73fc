//! The sending half of a connection without its bytes: what was sent and when, what arrived, what is lost, and how much may be under way.
