use std::collections::BTreeSet;

use proptest::prelude::*;
use ruma::{OwnedRoomId, OwnedUserId};

use super::recall::{is_open, size_of_about, standing};
use super::*;
use crate::conversation::memory::Confided;
use crate::conversation::{Kept, MemoryNumber, Millis, Origin, RegisterName, Salience, Task};

const DAY: u64 = 24 * 60 * 60 * 1000;
const NOW: Millis = Millis(400 * DAY);

fn user(name: &str) -> OwnedUserId {
    OwnedUserId::try_from(format!("@{name}:hs.test")).unwrap()
}

fn people(names: &[&str]) -> BTreeSet<OwnedUserId> {
    names.iter().map(|name| user(name)).collect()
}

fn swarm() -> Lane {
    Lane::Register(RegisterName("swarm".into()))
}

fn direct(name: &str) -> Lane {
    Lane::Direct(OwnedRoomId::try_from(format!("!{name}:hs.test")).unwrap())
}

fn memory(number: u64, text: &str) -> Memory {
    Memory {
        number: MemoryNumber(number),
        kept: Kept { text: text.into(), ..Kept::default() },
        origin: Origin {
            lane: swarm(),
            confided: Confided::new(),
            events: BTreeSet::new(),
            at: Millis(number * 1000),
            generation: 1,
        },
        uses: 0,
        used: Millis(number * 1000),
    }
}

fn about(names: &[&str], memory: Memory) -> Memory {
    Memory { kept: Kept { people: people(names), ..memory.kept }, ..memory }
}

fn task(task: Task, memory: Memory) -> Memory {
    Memory { kept: Kept { task: Some(task), ..memory.kept }, ..memory }
}

fn told_in(lane: Lane, by: &[&str], memory: Memory) -> Memory {
    let confided = match &lane {
        Lane::Direct(room) => Confided::from([(room.clone(), people(by))]),
        Lane::Register(_) => Confided::new(),
    };
    Memory { origin: Origin { lane, confided, ..memory.origin }, ..memory }
}

/// A crowd of memories that nothing below looks for, newest last.
fn crowd(from: u64, count: u64) -> impl Iterator<Item = Memory> {
    (from..from + count).map(|number| memory(number, &format!("filler{number} of no use")))
}

struct Asked<'a> {
    words: &'a str,
    people: &'a [&'a str],
    lane: Lane,
    dm: DmMemories,
    seen: Option<&'a Seen>,
}

impl Default for Asked<'_> {
    fn default() -> Self {
        Self { words: "", people: &[], lane: swarm(), dm: DmMemories::DmOnly, seen: None }
    }
}

fn recalled(memories: &Memories, asked: &Asked<'_>) -> Recalled {
    let people = people(asked.people);
    let hand = Hand { lane: &asked.lane, people: &people, words: asked.words, now: NOW };
    recall(memories, &hand, asked.dm, asked.seen)
}

fn shown(memories: &Memories, asked: &Asked<'_>) -> Vec<u64> {
    recalled(memories, asked).shown.into_iter().map(|number| number.0).collect()
}

#[test]
fn what_has_the_words_of_the_mail_is_recalled() {
    let all: Memories =
        [memory(1, "The cat of Alice is called Tom.")].into_iter().chain(crowd(2, 40)).collect();
    let found = recalled(&all, &Asked { words: "who remembers my CAT?", ..Asked::default() });
    assert_eq!(found.used, [MemoryNumber(1)]);
    assert_eq!(found.shown, [1, 38, 39, 40, 41].map(MemoryNumber));
}

#[test]
fn a_word_of_two_characters_is_found_inside_a_longer_sentence() {
    for (text, mail) in [
        ("彼女の子猫はトムという名前です", "子猫は元気ですか"),
        ("她住在北京的一个小区里", "你还记得北京吗"),
        ("앨리스의 고양이는 톰이다", "고양 고양이 이름이 뭐였지"),
    ] {
        let all: Memories = [memory(1, text)].into_iter().chain(crowd(2, 40)).collect();
        let found = recalled(&all, &Asked { words: mail, ..Asked::default() });
        assert_eq!(found.used, [MemoryNumber(1)], "{text}");
    }
}

#[test]
fn topics_are_found_by_their_words_and_people_by_their_whole_id() {
    let mut topical = memory(1, "He is a tom.");
    topical.kept.topics = BTreeSet::from(["domestic cats".into()]);
    let of_alice = about(&["alice"], memory(2, "She sings."));
    let of_another = about(&["alice2"], memory(3, "She sings not."));
    let all: Memories = [topical, of_alice, of_another].into_iter().chain(crowd(4, 40)).collect();
    assert_eq!(recalled(&all, &Asked { words: "cats", ..Asked::default() }).used, [MemoryNumber(1)]);
    assert_eq!(recalled(&all, &Asked { people: &["alice"], ..Asked::default() }).used, [MemoryNumber(2)]);
}

#[test]
fn each_kind_has_its_limit() {
    let relevant = (1..=10).map(|number| memory(number, "a platypus"));
    let about_her = (11..=20).map(|number| about(&["alice"], memory(number, "she")));
    let all: Memories = relevant.chain(about_her).chain(crowd(100, 80)).collect();
    let found = shown(&all, &Asked { words: "platypus", people: &["alice"], ..Asked::default() });
    assert_eq!(found.iter().filter(|number| **number <= 10).count(), 8);
    assert_eq!(found.iter().filter(|number| (11..=20).contains(*number)).count(), 6);
    assert_eq!(found.iter().filter(|number| **number >= 100).count(), 2, "sixteen in all");
}

#[test]
fn open_tasks_are_recalled_whatever_is_said_and_come_last() {
    let open = task(Task::Open, memory(1, "ask Bob on Monday"));
    let done = task(Task::Done, memory(2, "asked Carol"));
    let all: Memories = [open, done].into_iter().chain(crowd(3, 40)).collect();
    assert_eq!(shown(&all, &Asked::default()), [39, 40, 41, 42, 1]);
}

#[test]
fn within_a_session_only_what_it_has_not_seen_comes_in() {
    let seen = Seen { generation: 2, ..Seen::default() };
    let of_alice = about(&["alice"], memory(1, "likes tea"));
    let mut worded_here = about(&["alice"], memory(60, "likes coffee"));
    worded_here.origin.generation = 2;
    let all: Memories =
        [of_alice, worded_here, memory(2, "the platypus sleeps")].into_iter().chain(crowd(3, 40)).collect();
    let ask = |words, seen: &Seen| {
        shown(&all, &Asked { words, people: &["alice"], seen: Some(seen), ..Asked::default() })
    };
    assert_eq!(ask("hm", &seen), [1], "somebody whom it had not met, and nothing that is merely new");
    let (hand_people, lane) = (people(&["alice"]), swarm());
    let hand = Hand { lane: &lane, people: &hand_people, words: "", now: NOW };
    let met = seen.with(&hand, &recalled(&all, &Asked { people: &["alice"], ..Asked::default() }));
    assert_eq!(ask("hm", &met), [0; 0]);
    assert_eq!(ask("a platypus", &met), [2], "what became relevant");
    let met = Seen { memories: BTreeSet::from([MemoryNumber(2)]), ..met };
    assert_eq!(ask("a platypus", &met), [0; 0]);
}

#[test]
fn a_word_that_many_memories_have_brings_none_into_a_session_that_goes_on() {
    let all: Memories = (1..=100)
        .map(|number| memory(number, if number % 20 == 0 { "tea at noon" } else { "nothing" }))
        .collect();
    let seen = Seen { generation: 2, ..Seen::default() };
    let ask = |words| shown(&all, &Asked { words, seen: Some(&seen), ..Asked::default() });
    assert_eq!(ask("tea"), [0; 0]);
    assert_eq!(ask("tea at five, or noon"), [20, 40, 60, 80, 100]);
}

#[test]
fn at_the_begin_of_a_session_common_words_bring_memories_too() {
    let cats = (1..=5).map(|number| memory(number, "her cat sleeps"));
    let all: Memories = cats.chain(crowd(6, 15)).collect();
    let found = recalled(&all, &Asked { words: "cat", ..Asked::default() });
    assert_eq!(found.shown, [1, 2, 3, 4, 5, 17, 18, 19, 20].map(MemoryNumber));
    assert_eq!(found.used, [], "a word that a quarter of them have tells not that one was of use");
}

#[test]
fn who_was_met_in_one_lane_is_met_anew_in_another() {
    let dm = direct("dm");
    let secret = told_in(dm.clone(), &["alice"], about(&["alice"], memory(1, "fears geese")));
    let all: Memories = [secret].into_iter().chain(crowd(2, 40)).collect();
    let hand_people = people(&["alice"]);
    let hand = Hand { lane: &swarm(), people: &hand_people, words: "", now: NOW };
    let seen = Seen { generation: 2, ..Seen::default() };
    let seen = seen.with(&hand, &recall(&all, &hand, DmMemories::DmOnly, None));
    let ask = |lane| shown(&all, &Asked { people: &["alice"], lane, seen: Some(&seen), ..Asked::default() });
    assert_eq!(ask(swarm()), [0; 0]);
    assert_eq!(ask(dm), [1]);
}

#[test]
fn all_open_tasks_are_shown_however_much_they_are_about() {
    let topics: BTreeSet<String> = (0..16).map(|at| format!("{at:0>255}")).collect();
    let long = |number| {
        let mut made = task(Task::Open, memory(number, &"z".repeat(1000)));
        made.kept.topics.clone_from(&topics);
        made
    };
    let all: Memories = (1..=16).map(long).collect();
    let found = recalled(&all, &Asked::default());
    assert_eq!((found.shown.len(), found.bare.len()), (16, 16));
    let all: Memories = (1..=4).map(long).collect();
    let found = recalled(&all, &Asked::default());
    assert_eq!(found.bare, [MemoryNumber(1)], "the oldest stands back");
}

#[test]
fn a_direct_rooms_memories_stay_there_unless_the_operator_allows_more() {
    let dm = direct("dm");
    let all: Memories =
        [told_in(dm.clone(), &["alice"], about(&["alice"], memory(1, "a secret")))].into_iter().collect();
    let check = |policy, lane: &Lane, people: &[&str], expect: bool| {
        let asked = Asked { words: "secret", people, lane: lane.clone(), dm: policy, seen: None };
        assert_eq!(shown(&all, &asked) == [1], expect, "{policy:?} {lane:?} {people:?}");
    };
    for lane in [&dm, &direct("other"), &swarm()] {
        check(DmMemories::DmOnly, lane, &["alice"], *lane == dm);
        check(DmMemories::SamePerson, lane, &["alice", "bob"], true);
        check(DmMemories::SamePerson, lane, &["bob"], *lane == dm);
        check(DmMemories::Everywhere, lane, &["bob"], true);
    }
}

#[test]
fn what_was_worded_before_the_memory_of_another_direct_room_stays_where_that_stays() {
    let mut worded_in_swarm = memory(1, "a secret");
    worded_in_swarm.origin.confided =
        Confided::from([(OwnedRoomId::try_from("!dm:hs.test").unwrap(), people(&["alice"]))]);
    let all: Memories = [worded_in_swarm].into_iter().collect();
    let check = |dm, people: &[&str], expect: bool| {
        assert_eq!(
            shown(&all, &Asked { people, dm, ..Asked::default() }) == [1],
            expect,
            "{dm:?} {people:?}"
        );
    };
    check(DmMemories::DmOnly, &["alice"], false);
    check(DmMemories::SamePerson, &["bob"], false);
    check(DmMemories::SamePerson, &["alice", "bob"], true);
    check(DmMemories::Everywhere, &["bob"], true);
}

#[test]
fn what_nobody_told_is_no_same_persons() {
    let of_nobody = told_in(direct("dm"), &[], memory(1, "a secret"));
    let all: Memories = [of_nobody].into_iter().collect();
    let asked = Asked { people: &["alice"], dm: DmMemories::SamePerson, ..Asked::default() };
    assert_eq!(shown(&all, &asked), [0; 0]);
}

fn any_memory() -> impl Strategy<Value = Memory> {
    let words =
        prop::collection::vec(prop::sample::select(vec!["tea", "cat", "猫", "北京", "x", "noon"]), 0..6);
    let names = || prop::collection::vec(prop::sample::select(vec!["alice", "bob", "carol"]), 0..3);
    let lane = prop::sample::select(vec![swarm(), direct("a"), direct("b")]);
    let task = prop::sample::select(vec![None, None, None, Some(Task::Open), Some(Task::Done)]);
    let sizes = (0..900_usize, prop::collection::btree_set(1..255_usize, 0..8));
    (words, names(), names(), lane, task, 0..=100_u64, 0..9_u32, 0..400_u64, sizes).prop_map(
        |(words, people_of, told_by, lane, task, salience, uses, used, (padding, topics))| {
            let text = format!("{} {}", words.join(" "), "z".repeat(padding));
            let mut made = about(&people_of, told_in(lane, &told_by, memory(0, &text)));
            made.kept.topics = topics.into_iter().map(|length| "t".repeat(length)).collect();
            (made.kept.task, made.kept.salience) = (task, Salience::of_hundredths(salience));
            (made.uses, made.used) = (uses, Millis(used * DAY));
            made
        },
    )
}

fn any_memories() -> impl Strategy<Value = Vec<Memory>> {
    prop::collection::vec(any_memory(), 0..40).prop_map(|memories| {
        let numbered =
            (1..).zip(memories).map(|(number, memory)| Memory { number: MemoryNumber(number), ..memory });
        numbered.collect()
    })
}

fn any_dm() -> impl Strategy<Value = DmMemories> {
    prop::sample::select(vec![DmMemories::DmOnly, DmMemories::SamePerson, DmMemories::Everywhere])
}

fn any_seen(count: u64) -> impl Strategy<Value = Option<Seen>> {
    let memories = prop::collection::btree_set((0..=count).prop_map(MemoryNumber), 0..10);
    prop::option::of(memories.prop_map(|memories| Seen { generation: 2, memories, ..Seen::default() }))
}

proptest! {
    #[test]
    fn recall_is_bounded_and_within_what_is_allowed(
        memories in any_memories(), dm in any_dm(), seen in any_seen(40), at in 0..3_usize, words in "(tea|cat|猫| ){0,5}",
    ) {
        let all: Memories = memories.iter().cloned().collect();
        let lane = [swarm(), direct("a"), direct("b")][at].clone();
        let hand_people = people(&["alice"]);
        let hand = Hand { lane: &lane, people: &hand_people, words: &words, now: NOW };
        let found = recall(&all, &hand, dm, seen.as_ref());
        let of = |number: &MemoryNumber| all.get(*number).unwrap();
        prop_assert!(found.shown.len() <= 16);
        let size = |number: &MemoryNumber| {
            let about = if found.bare.contains(number) { 0 } else { size_of_about(of(number)) };
            of(number).kept.text.len() + about
        };
        prop_assert!(found.shown.iter().map(size).sum::<usize>() <= 16 * 1024);
        prop_assert_eq!(found.shown.iter().collect::<BTreeSet<_>>().len(), found.shown.len());
        for number in &found.shown {
            prop_assert!(dm.allows(of(number), &hand));
            prop_assert!(!seen.as_ref().is_some_and(|seen| seen.has(of(number))));
        }
        prop_assert!(found.used.iter().all(|number| found.shown.contains(number)));
        let open = memories.iter().filter(|memory| {
            memory.kept.task == Some(Task::Open) && dm.allows(memory, &hand)
                && !seen.as_ref().is_some_and(|seen| seen.has(memory))
        });
        let open: Vec<MemoryNumber> = open.map(|memory| memory.number).collect();
        prop_assert!(open.len() > 16 || open.iter().all(|number| found.shown.contains(number)));
    }

    #[test]
    fn recall_hangs_on_what_is_known_alone_and_not_on_how_it_came(
        memories in any_memories(), gone in any_memories(), words in "(tea|cat|猫|北京| ){0,5}",
    ) {
        let all: Memories = memories.iter().cloned().collect();
        let mut other: Memories = gone.iter().cloned().map(|memory| Memory {
            number: MemoryNumber(memory.number.0 + 20), ..memory
        }).collect();
        for memory in memories.iter().rev() {
            other.insert(memory.clone());
        }
        for number in (1..=100).map(MemoryNumber) {
            if all.get(number).is_none() {
                other.remove(number);
            }
        }
        let asked = Asked { words: &words, people: &["alice", "bob"], ..Asked::default() };
        prop_assert_eq!(recalled(&all, &asked), recalled(&other, &asked));
    }

    #[test]
    fn use_lifts_and_disuse_sinks(memory in any_memory(), uses in 1..9_u32, days in 0..400_u64) {
        let more = Memory { uses: memory.uses + uses, ..memory.clone() };
        prop_assert!(standing(&more, NOW) > standing(&memory, NOW));
        let later = Millis(NOW.0 + (days + 1) * DAY);
        prop_assert!(standing(&memory, later) < standing(&memory, NOW));
        let mut dearer = memory.clone();
        dearer.kept.salience = Salience::of_hundredths(100);
        prop_assert!(standing(&dearer, NOW) >= standing(&memory, NOW));
    }

    #[test]
    fn what_is_used_more_is_never_left_out_for_it(memories in any_memories(), lucky in 0..40_usize) {
        prop_assume!(lucky < memories.len());
        let asked = Asked { words: "tea cat 北京", people: &["alice"], dm: DmMemories::Everywhere, ..Asked::default() };
        let mut all: Memories = memories.iter().cloned().collect();
        let number = memories[lucky].number;
        let before = recalled(&all, &asked).used.contains(&number);
        all.use_now(number, NOW);
        prop_assert!(!before || recalled(&all, &asked).used.contains(&number));
    }
}

#[test]
fn what_counts_least_makes_way_and_of_equals_the_oldest() {
    let with = |number, uses, salience| {
        let mut memory = Memory { uses, used: NOW, ..memory(number, "x") };
        memory.kept.salience = Salience::of_hundredths(salience);
        memory
    };
    let all =
        [with(1, 0, 50), with(2, 4, 10), with(3, 0, 10), with(4, 0, 50), task(Task::Open, with(5, 0, 0))];
    let gone = |most| surplus(all.iter(), most, NOW).into_iter().map(|number| number.0).collect::<Vec<_>>();
    assert_eq!(gone(5), [0; 0]);
    assert_eq!(gone(4), [3]);
    assert_eq!(gone(3), [2, 3]);
    assert_eq!(gone(2), [1, 2, 3]);
    assert_eq!(gone(0), [1, 2, 3, 4], "an open task stays");
}

fn any_kept() -> impl Strategy<Value = Memory> {
    let tasks = prop_oneof![Just(None), Just(Some(Task::Open)), Just(Some(Task::Done))];
    (tasks, 0_u32..20, 0_u64..=100, 0_u64..400).prop_map(|(task, uses, salience, day)| {
        let mut memory = Memory { uses, used: Millis(day * DAY), ..memory(0, "x") };
        (memory.kept.task, memory.kept.salience) = (task, Salience::of_hundredths(salience));
        memory
    })
}

proptest! {
    #[test]
    fn what_makes_way_is_no_open_task_counts_no_more_than_what_stays_and_is_no_more_than_must_be(
        drawn in prop::collection::vec(any_kept(), 0..40), most in 0_usize..40
    ) {
        let numbered = (1..).zip(drawn).map(|(number, memory)| Memory { number: MemoryNumber(number), ..memory });
        let all: Vec<Memory> = numbered.collect();
        let gone = surplus(all.iter(), most, NOW);
        let (gone, left): (Vec<&Memory>, Vec<&Memory>) =
            all.iter().partition(|memory| gone.contains(&memory.number));
        prop_assert!(gone.iter().all(|memory| !is_open(memory)));
        let open = all.iter().filter(|memory| is_open(memory)).count();
        prop_assert_eq!(left.len(), all.len().min(most.max(open)));
        let counts = |memory: &Memory| (standing(memory, NOW), memory.number);
        for stays in left.iter().filter(|memory| !is_open(memory)) {
            prop_assert!(gone.iter().all(|goes| counts(goes) < counts(stays)));
        }
    }
}
