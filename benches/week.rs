//! A week of five Personas who talk too much and three people, on virtual time: turns by cause, and what they cost.

#[expect(
    dead_code,
    unused_imports,
    reason = "of what the tests know of Personas together, the bench plays a week"
)]
#[path = "../tests/it/company/mod.rs"]
mod company;
#[expect(unused_imports, clippy::unwrap_used, reason = "helpers of tests, of which benches use a part")]
#[path = "../tests/it/fake/mod.rs"]
mod fake;
#[path = "../tests/it/simulation"]
mod simulation {
    //! The scenes' world.

    #[expect(dead_code, reason = "the bench plays one scene")]
    pub(crate) mod stage;
    #[expect(dead_code, unused_imports, reason = "the bench plays one scene")]
    pub(crate) mod week;
    #[expect(dead_code, reason = "the bench plays one scene")]
    pub(crate) mod world;
}

use persona_bridge::bridge::Config;
use persona_bridge::persona::Among;

use company::Manner;
use simulation::week::{WEEK, play};

fn main() {
    print("as shipped", |_| {});
    print("without hop and pair rules", |config| {
        config.among = Among { max_hops: u32::MAX, pair: None, ..config.among };
    });
}

#[expect(clippy::print_stdout, reason = "figures are what a bench is for")]
fn print(name: &str, change: impl FnOnce(&mut Config)) {
    let week = play(Manner::Talkative, WEEK, change);
    println!("week, {name}: {}; {} laws broken", week.report(), week.faults().len());
}
