//! The whole bridge on virtual time: scenes that people play with it, and its power cut at every millisecond.

mod account;
mod again;
mod brake;
mod budget;
mod care;
mod crash;
mod encryption;
mod hearing;
mod limits;
mod losses;
mod memories;
mod model;
mod months;
mod outages;
mod patience;
mod put_out;
mod release;
mod rooms;
mod sending;
mod spoilt;
mod stage;
mod start_lines;
mod states;
mod trims;
mod turns;
mod world;
