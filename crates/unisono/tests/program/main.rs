//! The program as its users call it: words, files and streams go in, output and an exit code come out.

mod desk;
mod dialects_agree;
mod documents;
mod environment;
#[path = "../support/every_dialect.rs"]
mod every_dialect;
mod files;
mod following;
mod in_cluster;
mod ks;
mod losses;
mod secrets;
mod seeds;
mod server;
mod submit;
