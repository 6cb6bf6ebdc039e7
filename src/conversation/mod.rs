//! Rooms, messages and words: what is said, to whom, and how it reads. Pure: no clock, no disk, no network.
//!
//! It never decides when a Persona acts (that is [`crate::persona`]) and never meets a wire form.

pub mod about_me;
pub mod address;
pub mod batch;
pub mod campaign;
pub mod command;
pub mod event;
pub mod hops;
pub mod ids;
pub mod invite;
pub mod memory;
pub mod notices;
pub mod past;
pub mod permission;
pub mod prompt;
pub mod reactions;
pub mod register;
pub mod reminder;
pub mod reply;
pub mod room;
pub mod steer;

pub use batch::{Batch, Delivery, DeliveryKind};
pub use campaign::{Campaign, Slug};
pub use event::{Cause, Content, Described, Event, Member, Membership, Message, MessageKind, Typing};
pub use ids::{Lane, LineId, Millis, PersonaId, RegisterName, RequestId, TurnId};
pub use memory::{Kept, Memory, MemoryNumber, Origin, Salience, Task};
pub use permission::{Bots, Level, Permissions};
pub use register::{DM, Heed, Listen, Register, ReplyIn, SpeakFrom, Wakes};
pub use reminder::{Remind, Reminder, ReminderNumber};
pub use room::{Persona, Room, Seat};
