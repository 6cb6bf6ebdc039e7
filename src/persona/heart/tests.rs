use proptest::prelude::*;

use super::*;
use crate::conversation::RegisterName;

const NOW: u64 = 100_000_000;
const HEART: Heart = Heart {
    beat: Duration::from_secs(1_800),
    beat_min: Duration::from_secs(60),
    beat_max: Duration::from_secs(21_600),
    cooldown: Duration::from_secs(60),
    wake_on_silence: false,
    wakes_per_day: 2,
};

fn lane() -> Lane {
    Lane::Register(RegisterName("swarm".to_owned()))
}

fn id(name: &str) -> PersonaId {
    PersonaId(name.to_owned())
}

/// An idle Persona whose mail waits for so many ms.
fn waits(name: &str, waited: u64, urgency: u16) -> Standing {
    Standing { unheard: Some((Millis(NOW - waited), lane())), ..idle(name, urgency) }
}

fn idle(name: &str, urgency: u16) -> Standing {
    let rhythm = Rhythm { urgency, ..Rhythm::default() };
    Standing { persona: id(name), state: State::Idle, unheard: None, home: Some(lane()), rhythm }
}

fn ended(ago: u64, one: Standing) -> Standing {
    Standing { rhythm: Rhythm { ended: Some(Millis(NOW - ago)), ..one.rhythm }, ..one }
}

#[track_caller]
fn check(heart: Heart, standings: &[Standing], expect: &str) {
    let shown = match heart.fall(standings, Millis(NOW), 0) {
        Fall::Grant(grant) => format!("{} by {:?}", grant.persona, grant.wake),
        other @ (Fall::Later(_) | Fall::Nothing) => format!("{other:?}"),
    };
    assert_eq!(shown, expect);
}

#[track_caller]
fn check_beat(tempos: &[u64], expect: u64) {
    let tempo = |tempo: &u64| Rhythm { tempo: Some(Duration::from_secs(*tempo)), ..Rhythm::default() };
    let unvoiced = Rhythm { urgency: 900, ..Rhythm::default() };
    let votes = tempos.iter().map(tempo).chain([unvoiced]);
    assert_eq!(HEART.beat(votes), Duration::from_secs(expect), "{tempos:?}");
}

#[test]
fn the_beat_is_the_lower_median_of_the_votes_within_bounds() {
    check_beat(&[], 1_800);
    check_beat(&[600], 600);
    check_beat(&[900, 600], 600);
    check_beat(&[900, 600, 1_200], 900);
    check_beat(&[900, 600, 1_200, 4_000], 900);
    check_beat(&[1, 1], 60);
    check_beat(&[90_000, 90_000, 1], 21_600);
}

#[test]
fn who_has_waited_longest_is_picked_and_urgency_weighs() {
    check(HEART, &[waits("a", 1_000, 0), waits("b", 2_000, 0)], "b by Beat");
    check(HEART, &[waits("a", 1_000, 302), waits("b", 2_000, 0)], "a by Beat");
    check(HEART, &[waits("a", 1_000, 300), waits("b", 2_000, 0)], "b by Beat");
    check(HEART, &[waits("a", 1_000, 1_000), waits("b", 10_000, 0)], "b by Beat");
    check(HEART, &[waits("b", 2_000, 5), waits("a", 2_000, 5)], "a by Beat");
    check(HEART, &[waits("b", 0, 5), waits("a", 0, 900)], "a by Beat");
}

#[test]
fn only_who_is_idle_and_cooled_down_is_picked_and_the_beat_waits_for_the_others() {
    let thinks = |one| Standing { state: State::Thinks, ..one };
    let held = |one| Standing { state: State::Held, ..one };
    check(HEART, &[thinks(waits("a", 9_000, 0)), waits("b", 1, 0)], "b by Beat");
    check(HEART, &[thinks(waits("a", 9_000, 0)), idle("b", 0)], "Later(None)");
    check(HEART, &[held(waits("a", 9_000, 0)), idle("b", 0)], "Nothing");
    check(HEART, &[ended(60_000, waits("a", 9_000, 0))], "a by Beat");
    let later = format!("Later(Some(Millis({})))", NOW + 1);
    check(HEART, &[ended(59_999, waits("a", 9_000, 0)), idle("b", 0)], &later);
    check(HEART, &[], "Nothing");
}

#[test]
fn silence_wakes_who_rested_longest_so_often_a_day() {
    let heart = Heart { wake_on_silence: true, ..HEART };
    let two = [ended(70_000, idle("a", 0)), ended(80_000, idle("b", 0))];
    check(HEART, &two, "Nothing");
    check(heart, &two, "b by Silence");
    check(heart, &[ended(9, idle("a", 0))], "Nothing");
    check(heart, &[Standing { home: None, ..idle("a", 0) }], "Nothing");
    check(heart, &[waits("c", 5, 0), idle("a", 0)], "c by Beat");
    check(heart, &[Standing { state: State::Thinks, ..waits("c", 5, 0) }, idle("a", 0)], "Later(None)");
    assert_eq!(heart.fall(&two, Millis(NOW), 2), Fall::Nothing);
    let pace = Beats::default();
    let silent = Grant { persona: id("a"), lane: lane(), wake: Wake::Silence };
    let pace =
        pace.fallen(Millis(5), Millis(0), Some(silent.clone())).fallen(Millis(6), Millis(0), Some(silent));
    assert_eq!((pace.silences_on(Millis(0)), pace.silences_on(Millis(9))), (2, 0));
    assert_eq!(pace.fallen(Millis(9), Millis(9), None).silences_on(Millis(9)), 0);
}

#[test]
fn after_a_time_away_one_beat_falls_and_a_clock_set_back_makes_nobody_wait() {
    let pace = Beats { last: Millis(1_000), ..Beats::default() };
    let beat = Duration::from_millis(100);
    assert_eq!(pace.next(beat, Millis(1_050)), Millis(1_100));
    let now = Millis(9_000);
    assert!(pace.next(beat, now) < now);
    assert_eq!(pace.fallen(now, Millis(0), None).next(beat, now), Millis(9_100));
    assert_eq!(pace.next(beat, Millis(400)), Millis(500));
}

#[test]
fn weights_are_powers_of_ten() {
    assert_eq!(weight(0), 1 << 32);
    for urgency in 0..=1000_u16 {
        let exact = 10_f64.powf(f64::from(urgency) / 1000.0) * 4_294_967_296.0;
        #[expect(clippy::cast_precision_loss, reason = "it is compared with a tolerance")]
        let share = weight(urgency) as f64 / exact;
        assert!((share - 1.0).abs() < 1e-8, "{urgency}: {share}");
        assert!(urgency == 0 || weight(urgency) > weight(urgency - 1), "{urgency}");
    }
    assert_eq!(weight(2_000), weight(1_000));
}

proptest! {
    #[test]
    fn nobody_without_a_cause_is_granted_a_turn(
        people in prop::collection::vec((0..3_u8, prop::option::of(0..9_999_u64), 0..200_000_u64, 0..1001_u16), 0..5),
        silent in any::<bool>(), silences in 0..4_u32,
    ) {
        let heart = Heart { wake_on_silence: silent, ..HEART };
        let standings: Vec<Standing> = people.iter().enumerate().map(|(n, (state, mail, rested, urgency))| {
            let one = ended(*rested, idle(&format!("p{n}"), *urgency));
            let state = [State::Idle, State::Thinks, State::Held][usize::from(*state)];
            Standing { state, unheard: mail.map(|waited| (Millis(NOW - waited), lane())), ..one }
        }).collect();
        let fall = heart.fall(&standings, Millis(NOW), silences);
        prop_assert_eq!(&fall, &heart.fall(&standings, Millis(NOW), silences));
        let mut turned = standings.clone();
        turned.reverse();
        prop_assert_eq!(&fall, &heart.fall(&turned, Millis(NOW), silences), "order is no cause");
        if let Fall::Grant(grant) = fall {
            let one = standings.iter().find(|one| one.persona == grant.persona).unwrap();
            prop_assert!(heart.is_free(one, Millis(NOW)));
            match grant.wake {
                Wake::Beat => prop_assert!(one.unheard.is_some()),
                Wake::Silence | Wake::Mail | Wake::Reminder => prop_assert!(silent && silences < 2),
            }
        }
    }

    /// Each beat one of them hears; new mail comes to each at once. However urgent the others are, everybody's turn comes.
    #[test]
    fn nobody_starves(urgencies in prop::collection::vec(0..1001_u16, 1..6)) {
        let step = 1_800_000;
        let mut since = vec![0; urgencies.len()];
        for beat in 1..200_u64 {
            let now = beat * step;
            let standings: Vec<Standing> = since.iter().zip(&urgencies).enumerate().map(|(n, (since, urgency))| {
                Standing { unheard: Some((Millis(*since), lane())), ..idle(&n.to_string(), *urgency) }
            }).collect();
            let Fall::Grant(grant) = HEART.fall(&standings, Millis(now), 0) else { panic!("somebody waits") };
            since[grant.persona.as_str().parse::<usize>().unwrap()] = now;
            let most = 10 * step * (urgencies.len() as u64 + 1);
            prop_assert!(since.iter().all(|since| now - since <= most));
        }
    }
}
