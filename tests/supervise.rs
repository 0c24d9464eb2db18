//! `karyi supervise` with a server that plays the roles.

mod home;
mod killed;
mod limits;
mod real_model;
mod role_server;
mod roles;
mod room;
mod workers;
