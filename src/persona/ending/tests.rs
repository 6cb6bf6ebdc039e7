use proptest::prelude::*;

use super::*;

fn answered() -> Ending {
    Ending::Answered { reply: "{}".to_owned() }
}

fn transient_ending(retry_after: Option<u64>) -> Ending {
    Ending::Transient { reason: "overloaded".to_owned(), retry_after: retry_after.map(Duration::from_secs) }
}

/// One letter an ending, so that a whole ladder is a word.
fn ending(letter: char) -> Ending {
    let reason = || letter.to_string();
    match letter {
        'a' => answered(),
        't' => transient_ending(None),
        'f' => Ending::Final { reason: reason() },
        'i' => Ending::Invalid { fault: reason() },
        'l' => Ending::Lost { reason: reason() },
        's' => Ending::Stranded,
        'd' => Ending::Died { reason: reason() },
        'q' => Ending::Rejected { reason: reason() },
        'p' => Ending::Poisoned { reason: reason() },
        'r' => Ending::Refused { reason: reason() },
        'b' => Ending::TooLong,
        'g' => Ending::SessionGone { reason: reason() },
        'u' => Ending::Unsettled { why: Reason::Cold },
        other => panic!("no ending {other}"),
    }
}

fn troubles_of(verdict: &Verdict) -> Option<(&Troubles, Option<Duration>)> {
    match verdict {
        Verdict::Again { after, troubles } | Verdict::Same { after, troubles } => {
            Some((troubles, Some(*after)))
        }
        Verdict::NewGeneration { troubles, .. } => Some((troubles, None)),
        Verdict::Commit { .. }
        | Verdict::Shorten { .. }
        | Verdict::Hold { .. }
        | Verdict::StopAsking { .. } => None,
    }
}

fn short(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Commit { .. } => "commit".to_owned(),
        Verdict::Again { after, .. } => format!("again {}", after.as_secs()),
        Verdict::Same { after, .. } => format!("same {}", after.as_secs()),
        Verdict::NewGeneration { spoilt: false, .. } => "new".to_owned(),
        Verdict::NewGeneration { spoilt: true, .. } => "spoilt, new".to_owned(),
        Verdict::Shorten { .. } => "shorten".to_owned(),
        Verdict::Hold { spoilt: false, .. } => "hold".to_owned(),
        Verdict::Hold { spoilt: true, .. } => "spoilt, hold".to_owned(),
        Verdict::StopAsking { .. } => "stop".to_owned(),
    }
}

/// Climbs the ladder with these endings; stops where a verdict leads out.
fn climb(endings: impl IntoIterator<Item = Ending>) -> (Vec<Verdict>, Troubles) {
    let mut troubles = Troubles::default();
    let mut verdicts = Vec::new();
    for ending in endings {
        let next = verdict(ending, &troubles);
        let written = troubles_of(&next).map(|(t, _)| t.clone());
        verdicts.push(next);
        match written {
            Some(written) => troubles = written,
            None => break,
        }
    }
    (verdicts, troubles)
}

#[track_caller]
fn check(endings: &str, expected: &str) {
    let (verdicts, _) = climb(endings.chars().map(ending));
    let said: Vec<String> = verdicts.iter().map(short).collect();
    assert_eq!(said.join(", "), expected, "after {endings}");
}

#[test]
fn an_answer_is_committed_whatever_came_before() {
    check("a", "commit");
    check("ttfa", "again 2, again 4, again 1, commit");
    check("iia", "again 0, again 0, commit");
    check("ga", "new, commit");
    assert_eq!(verdict(answered(), &Troubles::default()), Verdict::Commit { reply: "{}".to_owned() });
}

#[test]
fn transient_doubles_to_ten_minutes_and_goes_on_for_ever() {
    check(
        "ttttttttttt",
        "again 2, again 4, again 8, again 16, again 32, again 64, again 128, again 256, again 512, again 600, again 600",
    );
    let (verdicts, troubles) = climb(std::iter::repeat_with(|| ending('t')).take(5_000));
    assert_eq!((verdicts.len(), troubles.transient), (5_000, 5_000));
}

#[test]
fn what_the_api_asks_for_is_a_floor_and_a_week_its_ceiling() {
    let after = |retry_after, transient| {
        let before = Troubles { transient, ..Troubles::default() };
        let verdict = verdict(transient_ending(retry_after), &before);
        troubles_of(&verdict).and_then(|(_, after)| after).map(|after| after.as_secs())
    };
    assert_eq!(after(Some(30), 0), Some(30));
    assert_eq!(after(Some(30), 8), Some(512));
    assert_eq!(after(Some(18_000), 20), Some(18_000));
    assert_eq!(after(Some(u64::MAX), 0), Some(RETRY_AFTER_CAP.as_secs()));
}

#[test]
fn a_lost_process_is_fed_the_same_line_for_ever() {
    check("lllllllll", "same 0, same 1, same 2, same 4, same 8, same 16, same 32, same 60, same 60");
}

#[test]
fn a_stranded_line_is_asked_for_by_the_next_attempt() {
    check("sls", "again 0, same 1, again 2");
    check("sif", "again 0, again 0, again 1");
    check("ssssssss", "again 0, again 1, again 2, again 4, again 8, again 16, again 32, again 60");
}

#[test]
fn an_outage_that_shows_in_two_ways_still_backs_off() {
    check("tltltl", "again 2, same 0, again 4, same 1, again 8, same 2");
}

#[test]
fn an_ending_that_the_api_gave_begins_the_waits_anew() {
    check("ttft", "again 2, again 4, again 1, again 2");
    check("tlit", "again 2, same 0, again 0, again 2");
    check("llill", "same 0, same 1, again 0, same 0, same 1");
    check("lfl", "same 0, again 1, same 0");
}

#[test]
fn a_final_ending_is_tried_once_more_then_afresh_then_held() {
    check("fff", "again 1, new, hold");
    check("ftff", "again 1, again 2, new, hold");
    check("gff", "new, again 1, hold");
}

#[test]
fn an_invalid_reply_is_told_twice_then_afresh_twice_then_held() {
    check("iiiiii", "again 0, again 0, new, again 0, again 0, hold");
    check("itilii", "again 0, again 2, again 0, same 0, new, again 0");
}

#[test]
fn too_long_begins_afresh_once_then_with_less() {
    check("bb", "new, shorten");
    check("gb", "new, shorten");
    check("iib", "again 0, again 0, new");
}

#[test]
fn mail_is_halved_until_it_is_one_message() {
    let halves = std::iter::successors(Some((1..=11).collect::<Vec<u64>>()), |seqs| Some(shorter(seqs)?.0));
    let lengths: Vec<usize> = halves.map(|seqs| seqs.len()).collect();
    assert_eq!(lengths, [11, 6, 3, 2, 1]);
    let (older, troubles) = shorter(&[4, 2, 9]).unwrap();
    assert_eq!((older, troubles), (vec![4, 2], Troubles { generations: 1, ..Troubles::default() }));
    assert_eq!(shorter(&[7]), None);
}

#[test]
fn a_session_may_be_gone_three_times() {
    check("gggg", "new, new, new, hold");
}

#[test]
fn what_was_only_to_be_settled_uses_up_no_generation_and_the_waits_go_on() {
    check("ttutt", "again 2, again 4, new, again 8, again 16");
    check("uuuuuggg", "new, new, new, new, new, new, new, new");
    check("uff", "new, again 1, new");
}

#[test]
fn a_new_generation_has_a_reason_of_a_name() {
    let why = |endings: &str| match climb(endings.chars().map(ending)).0.pop() {
        Some(Verdict::NewGeneration { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    let all = ["p", "ddddd", "ff", "qq", "iii", "b", "g", "u"].map(why);
    let expected = [
        Reason::Poisoned,
        Reason::Died,
        Reason::Final,
        Reason::Rejected,
        Reason::Invalid,
        Reason::TooLong,
        Reason::Gone,
        Reason::Cold,
    ];
    assert_eq!(all, expected);
}

#[test]
fn mixed_faults_do_not_add_generations() {
    check("fiifiif", "again 1, again 0, again 0, new, again 0, again 0, hold");
    check("iiiff", "again 0, again 0, new, again 1, hold");
    check("bfgf", "new, again 1, new, again 1");
}

#[test]
fn what_the_api_rejects_twice_spoils_the_session_and_in_the_next_one_is_held() {
    check("qqa", "again 1, spoilt, new, commit");
    check("qqq", "again 1, spoilt, new, spoilt, hold");
    check("qf", "again 1, new");
}

#[test]
fn a_poisoned_session_is_followed_by_one_alone() {
    check("pa", "spoilt, new, commit");
    check("pp", "spoilt, new, spoilt, hold");
    check("bp", "new, spoilt, hold");
}

#[test]
fn deaths_at_one_line_spoil_the_session_and_then_hold_the_line_with_ever_longer_waits() {
    check(
        "dddddddddd",
        "same 0, same 1, same 2, same 4, spoilt, new, same 16, same 32, same 60, same 60, spoilt, hold",
    );
    check(
        "ddddtddddi",
        "same 0, same 1, same 2, same 4, again 2, same 8, same 16, same 32, same 60, again 0",
    );
    check("dldldldld", "same 0, same 1, same 2, same 4, same 8, same 16, same 32, same 60, spoilt, new");
}

#[test]
fn a_refused_account_stops_the_asking() {
    check("r", "stop");
    check("tir", "again 2, again 0, stop");
}

#[test]
fn the_fault_stays_until_she_is_told_another_or_begins_afresh() {
    let fault_after = |endings: &str| climb(endings.chars().map(ending)).1.fault;
    assert_eq!(fault_after("i"), Some("i".to_owned()));
    assert_eq!(fault_after("itl"), Some("i".to_owned()));
    assert_eq!(fault_after("iii"), None);
    assert_eq!(fault_after("ig"), None);
    let before = Troubles { fault: Some("old".to_owned()), invalid: 1, ..Troubles::default() };
    let told = verdict(ending('i'), &before);
    assert_eq!(troubles_of(&told).and_then(|(t, _)| t.fault.clone()), Some("i".to_owned()));
}

#[test]
fn a_new_generation_forgets_all_but_how_many_there_were() {
    let (_, troubles) = climb("tlifg".chars().map(ending));
    assert_eq!(troubles, Troubles { generations: 1, ..Troubles::default() });
}

#[test]
fn the_reason_reaches_the_operators() {
    let (verdicts, _) = climb("fff".chars().map(ending));
    assert_eq!(verdicts.last(), Some(&Verdict::Hold { reason: "f".to_owned(), spoilt: false }));
    assert_eq!(verdict(ending('r'), &Troubles::default()), Verdict::StopAsking { reason: "r".to_owned() });
}

#[test]
fn one_message_that_is_too_long_is_shown_in_part_once_and_only_where_that_is_less() {
    let fresh = Troubles { generations: 1, ..Troubles::default() };
    let tight = Troubles { tight: true, ..fresh.clone() };
    assert_eq!(tighter(&fresh, 3_000, 2_048), Some(tight.clone()));
    assert_eq!(tighter(&fresh, 2_048, 2_048), None);
    assert_eq!(tighter(&tight, 3_000, 2_048), None);
    let gone = verdict(ending('g'), &tight);
    let stays = matches!(&gone, Verdict::NewGeneration { troubles, .. } if troubles.tight);
    assert!(stays, "{gone:?}");
}

fn any_troubles() -> impl Strategy<Value = Troubles> {
    let count = || prop_oneof![0..6_u32, Just(u32::MAX)];
    (count(), count(), 0..2_u32, 0..3_u32, 0..4_u32, 0..5_u32, prop::option::of("[a-z]{1,3}")).prop_map(
        |(transient, lost, finals, invalid, generations, deaths, fault)| Troubles {
            transient,
            lost,
            deaths,
            finals,
            invalid,
            generations,
            tight: false,
            fault,
        },
    )
}

proptest! {
    #[test]
    fn a_ladder_of_its_own_faults_leads_out(endings in prop::collection::vec("[fibgqp]", 16..17)) {
        let endings: Vec<Ending> = endings.iter().flat_map(|e| e.chars()).map(ending).collect();
        let (verdicts, _) = climb(endings);
        let held = matches!(verdicts.last(), Some(Verdict::Hold { .. } | Verdict::Shorten { .. }));
        prop_assert!(held);
        prop_assert!(verdicts.len() <= 16);
    }

    #[test]
    fn outages_between_do_not_lengthen_the_ladder(word in "[tlsfibgqp]{0,200}") {
        let own = |letters: &str| letters.chars().filter(|c| !"tls".contains(*c)).count();
        let (verdicts, _) = climb(word.chars().map(ending));
        prop_assert!(own(&word[..verdicts.len()]) <= 16);
    }

    #[test]
    fn deaths_lead_out_of_a_ladder_by_themselves(word in "[dls]{0,200}") {
        let (verdicts, _) = climb(word.chars().map(ending));
        let deaths = word[..verdicts.len()].chars().filter(|letter| *letter == 'd').count();
        prop_assert!(deaths <= 2 * DEATHS as usize);
    }

    #[test]
    fn every_delay_is_capped(letter in "[tlsdqfi]", asked in prop::option::of(any::<u64>()), before in any_troubles()) {
        let ending = match letter.as_str() {
            "t" => transient_ending(asked),
            other => ending(other.chars().next().unwrap()),
        };
        if let Some((_, Some(after))) = troubles_of(&verdict(ending, &before)) {
            prop_assert!(after <= asked.map_or(TRANSIENT_CAP, |_| RETRY_AFTER_CAP));
        }
    }

    #[test]
    fn backoff_never_falls(n in 0..100_000_u32) {
        prop_assert!(transient_backoff(n) <= transient_backoff(n + 1));
        prop_assert!(lost_backoff(n) <= lost_backoff(n + 1));
        prop_assert!(transient_backoff(n) >= TRANSIENT_FIRST);
        prop_assert!(transient_backoff(n + 10) == TRANSIENT_CAP && lost_backoff(n + 10) == LOST_CAP);
    }

    #[test]
    fn at_most_three_generations_a_turn(before in any_troubles(), letter in "[tlsdqpfibgr]") {
        let next = verdict(ending(letter.chars().next().unwrap()), &before);
        if let Verdict::NewGeneration { troubles, .. } = next {
            prop_assert!(troubles.generations <= GONE_GENERATIONS);
            prop_assert_eq!(troubles.generations, before.generations + 1);
        }
    }
}
