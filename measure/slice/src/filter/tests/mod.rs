mod expressions;
mod machine;
mod packets;
mod place;
mod random;
