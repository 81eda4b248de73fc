mod expressions;
mod kernel;
mod machine;
mod packets;
mod place;
mod programs;
mod random;
mod tcpdump;
