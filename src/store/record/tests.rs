use uuid::Uuid;

use super::*;
use crate::conversation::{LineId, Millis};
use crate::persona::session::{Account, Fingerprint, Session, Ttl};
use crate::store::table::Table;

/// A row as this version writes it, and as every later one must still read it.
fn check<R: Record>(golden: &str) {
    let bytes = [&[1], golden.as_bytes()].concat();
    let record: R = decode(Table::Meta, b"k", &bytes).unwrap();
    assert_eq!(String::from_utf8(encode(&record)[1..].to_vec()).unwrap(), golden);
    assert_eq!(encode(&record)[0], 1);
}

#[test]
fn forms_of_mail_stay_as_they_are() {
    check::<EventForm>(r#"{}"#);
    check::<EventForm>(r#"{"at":7}"#);
    check::<EventForm>(r#"{"at":7,"asked":["eir"]}"#);
    check::<EventForm>(r#"{"at":7,"heard":{"eir":12},"edits":["$e"],"redacted":{"!r:x.org":9}}"#);
    let mail = r#"{"lane":{"register":"public"},"room":"!r:x.org","sender":"@a:x.org","name":"A","event":"$e","kind":"text","text":"hi","thread":"$t","reply_to":"$p","addressed":true,"late":true,"said":5,"heard":6}"#;
    check::<MailForm>(mail);
    for kind in [
        r#""emote""#,
        r#""notice""#,
        r#""media""#,
        r#"{"edit":"$o"}"#,
        r#"{"redaction":"$o"}"#,
        r#""withdrawn""#,
    ] {
        check::<MailForm>(&mail.replace(r#""kind":"text""#, &format!(r#""kind":{kind}"#)));
    }
    check::<MailForm>(&mail.replace(r#""late":true"#, r#""late":true,"fed":true"#));
    check::<MailForm>(&mail.replace(r#""late":true"#, r#""wakes":false,"late":true"#));
    check::<MailForm>(&mail.replace(r#""late":true"#, r#""hops":2,"late":true"#));
    check::<MailForm>(&mail.replace(r#""late":true"#, r#""again":1,"late":true,"fed":true,"whole":true"#));
    check::<MailForm>(
        r#"{"lane":{"direct":"!d:x.org"},"room":"!d:x.org","sender":"@a:x.org","event":"$e","kind":"media","said":5,"heard":6}"#,
    );
    check::<HeardForm>(
        r#"{"lane":{"direct":"!d:x.org"},"room":"!d:x.org","event":"$e","sender":"@a:x.org","thread":"$t"}"#,
    );
    let turn = Uuid::nil();
    check::<HeldForm>(&format!(r#"{{"reason":"refused","turn":"{turn}","at":4,"mail":{mail}}}"#));
}

#[test]
fn forms_of_turns_stay_as_they_are() {
    check::<TurnForm>(
        r#"{"id":"00000000-0000-0000-0000-000000000001","lane":{"register":"public"},"wake":"reminder","seqs":[],"attempt":1,"not_before":0,"reminders":[3],"troubles":{"transient":0,"lost":0,"finals":0,"invalid":0,"generations":0,"fault":null}}"#,
    );
    check::<NumberForm>(r#"{"last":3}"#);
    check::<TurnForm>(
        r#"{"id":"00000000-0000-0000-0000-000000000001","lane":{"register":"public"},"seqs":[1,2],"attempt":2,"not_before":9,"troubles":{"transient":1,"lost":4,"finals":0,"invalid":2,"generations":0,"fault":"no json"}}"#,
    );
    check::<TurnForm>(
        r#"{"id":"00000000-0000-0000-0000-000000000001","lane":{"register":"public"},"seqs":[1,2],"attempt":2,"not_before":9,"spent":8,"troubles":{"transient":1,"lost":4,"finals":0,"invalid":2,"generations":0,"fault":"no json"}}"#,
    );
    check::<TurnForm>(
        r#"{"id":"00000000-0000-0000-0000-000000000001","lane":{"register":"public"},"seqs":[],"attempt":1,"not_before":0,"flush":"rental","troubles":{"transient":0,"lost":0,"finals":0,"invalid":0,"generations":0,"fault":null}}"#,
    );
    check::<TurnForm>(
        r#"{"id":"00000000-0000-0000-0000-000000000001","lane":{"register":"public"},"wake":"beat","seqs":[],"attempt":1,"not_before":0,"troubles":{"transient":0,"lost":0,"finals":0,"invalid":0,"generations":0,"fault":null}}"#,
    );
    check::<SessionForm>(
        r#"{"generation":2,"id":"00000000-0000-0000-0000-000000000001","fingerprint":{"model":"m"},"begun":5,"last_committed":"00000000-0000-0000-0000-000000000002","account":{"prefix":9,"used":8,"ttl":"1h","rehydrated":7,"shared":6,"rent":5,"pings":4,"pinged":3,"window":2,"resident":null,"attempts":1}}"#,
    );
    check::<SessionForm>(
        r#"{"generation":2,"id":"00000000-0000-0000-0000-000000000001","fingerprint":{"model":"m"},"begun":5,"last_committed":null,"account":{"prefix":9,"used":8,"ttl":"1h","rehydrated":7,"shared":6,"rent":5,"pings":4,"pinged":3,"window":2,"resident":null,"attempts":1,"last":["00000000-0000-0000-0000-000000000003",2]}}"#,
    );
}

#[test]
fn session_rows_of_older_versions_are_read() {
    let id = "00000000-0000-0000-0000-000000000001";
    let row = format!(
        r#"{{"generation":2,"id":"{id}","fingerprint":{{"schema":"1"}},"begun":5,"last_committed":"{id}","fed":["{id}"]}}"#
    );
    let read = |row: &str| {
        let bytes = [&[1], row.as_bytes()].concat();
        Session::from(decode::<SessionForm>(Table::Sessions, b"eir", &bytes).unwrap())
    };
    let session = Session {
        generation: 2,
        fingerprint: Fingerprint([("schema".to_owned(), "1".to_owned())].into()),
        last_committed: Some(LineId(Uuid::from_u128(1))),
        ..Session::fresh(Uuid::from_u128(1), Millis(5))
    };
    assert_eq!(read(&row), session);
    let counted = row.replace(r#""fed":["#, r#""account":{"prefix":9,"used":8,"ttl":"1h"},"fed":["#);
    let account = Account { prefix: 9, used: Some(Millis(8)), ttl: Some(Ttl::OneHour), ..Account::default() };
    assert_eq!(read(&counted), Session { account, ..session });
}

#[test]
fn the_form_of_turns_that_are_over_stays_as_it_is() {
    check::<PastForm>(r#"{"generation":2,"at":7}"#);
    check::<PastForm>(r#"{"turn":"00000000-0000-0000-0000-000000000001","generation":2,"at":7}"#);
    check::<PastForm>(
        r#"{"generation":2,"at":7,"heard":[{"event":"$e","room":"!r:x.org","sender":"@a:x.org","name":"A","text":"hi","said":5}],"said":[{"room":"!r:x.org","text":"ho"}]}"#,
    );
}

#[test]
fn the_form_of_reactions_stays_as_it_is() {
    check::<GatheredForm>(r#"{"one":{"event":"$e","room":"!r:x.org","to":"$s","key":"👍"}}"#);
    check::<GatheredForm>(r#"{"more":7}"#);
    check::<EventForm>(r#"{"at":7,"reacted":{"persona":"eir","lane":{"direct":"!d:x.org"},"number":3}}"#);
}

#[test]
fn the_form_of_campaigns_stays_as_it_is() {
    check::<CampaignForm>(r#"{"title":"The fair"}"#);
}

#[test]
fn the_form_of_reminders_stays_as_it_is() {
    check::<ReminderForm>(
        r#"{"lane":{"register":"public"},"room":"!r:x.org","text":"tea","hops":2,"at":7,"set":5,"listed":2}"#,
    );
    check::<ReminderForm>(r#"{"lane":{"direct":"!d:x.org"},"text":"tea","at":7,"set":5}"#);
}

#[test]
fn the_form_of_states_stays_as_it_is() {
    check::<StateForm>(r#"{"document":"{}","at":7}"#);
}

#[test]
fn forms_of_memories_stay_as_they_are() {
    check::<MemoryForm>(
        r#"{"text":"t","people":["@a:x.org"],"topics":["cats"],"salience":50,"task":"open","lane":{"direct":"!d:x.org"},"confided":{"!d:x.org":["@a:x.org"]},"events":["$e"],"at":5,"generation":2,"uses":3,"used":6}"#,
    );
    check::<MemoryForm>(
        r#"{"text":"t","salience":0,"lane":{"register":"public"},"events":[],"at":5,"generation":2,"uses":0,"used":5}"#,
    );
    check::<LearnedForm>(r#"{"room":"!r:x.org"}"#);
    check::<QuestionForm>(r#"{"room":"!r:x.org","user":"@a:x.org","forget":true,"mentions":false}"#);
    check::<QuestionForm>(
        r#"{"room":"!r:x.org","user":"@a:x.org","forget":false,"mentions":true,"command":"help","at":5}"#,
    );
    check::<SeenForm>(
        r#"{"generation":2,"memories":[1,3],"met":[[{"register":"public"},["@a:x.org"]],[{"direct":"!d:x.org"},[]]],"earlier":{"!r:x.org":["$e"]}}"#,
    );
}

#[test]
fn forms_of_the_ledger_stay_as_they_are() {
    let request = r#"{"persona":"eir","at":3,"kind":{"request":{"generation":1,"turn":2,"attempt":1,"number":1,"model":"m","tokens":{"input":1,"read":2,"written_5m":3,"written_1h":4,"output":5},"new":6,"expected":7,"gap_ms":8,"ttl":"5m","verdict":"hit","nanodollars":9,"first_token_ms":10,"rss":11}}}"#;
    check::<EntryForm>(request);
    check::<EntryForm>(&request.replace(r#""rss":11"#, r#""rss":11,"flush":"rental""#));
    for verdict in ["first", "rebuilt", "expired", "broken"] {
        check::<EntryForm>(&request.replace("hit", verdict));
    }
    check::<EntryForm>(
        r#"{"persona":"eir","at":3,"kind":{"ping":{"generation":2,"tokens":{"input":1,"read":2,"written_5m":3,"written_1h":4,"output":5},"nanodollars":6}}}"#,
    );
    check::<EntryForm>(
        r#"{"persona":"eir","at":3,"kind":{"warmth":{"generation":2,"pings":1,"paid":6,"saved":9}}}"#,
    );
    check::<EntryForm>(r#"{"persona":"eir","at":3,"kind":{"begun":{"generation":2,"why":"model changed"}}}"#);
}

#[test]
fn forms_of_the_outbox_stay_as_they_are() {
    check::<SayForm>(
        r#"{"sender":"@e:x.org","room":"!r:x.org","request":"q","kind":"m.room.message","cause":"c","part":"0","since":3,"parked":null,"body":"{}"}"#,
    );
    check::<SayForm>(
        r#"{"sender":"@e:x.org","room":"!r:x.org","request":"q","kind":"m.room.message","cause":"c","part":"0","since":3,"parked":"500","failed":true,"body":"{}"}"#,
    );
    let spoken =
        r#"{"persona":"eir","lane":{"register":"public"},"turn":"00000000-0000-0000-0000-000000000001"}"#;
    check::<SayForm>(&format!(
        r#"{{"sender":"@e:x.org","room":"!r:x.org","request":"q","kind":"m.room.message","cause":"c","part":"0","since":3,"parked":null,"body":"{{}}","spoken":{spoken}}}"#
    ));
    check::<OursForm>(&format!(r#"{{"sender":"@e:x.org","at":8,"spoken":["!r:x.org",{spoken}]}}"#));
    check::<RequestForm>(r#"{"waits":4294967296}"#);
    check::<RequestForm>(r#"{"sent":["$e",8]}"#);
    check::<OursForm>(r#"{"sender":"@e:x.org","at":8}"#);
    check::<SinceForm>(r#"{"at":8}"#);
    check::<IdentityForm>(r#"{"device":"D","token":"t","name":null,"avatar":"mxc://x.org/a"}"#);
}

#[test]
fn forms_of_rooms_stay_as_they_are() {
    check::<RoomForm>(r##"{"alias":"#r:x.org","encrypted":true,"mark":"$m","out":["eir"]}"##);
    check::<RoomForm>(
        r##"{"alias":"#r:x.org","encrypted":true,"mark":"$m","out":[],"name":{"text":"Tea","at":3},"topic":{"at":4}}"##,
    );
    check::<SeatForm>(r#"{"lane":{"register":"public"},"invite":"$i","line":{"at":2,"passed":true}}"#);
    check::<MemberForm>(r#"{"name":"A","joined":true,"at":2}"#);
    check::<QuarantineForm>(r#"{"raw":"{","reason":"no event id","at":1}"#);
    check::<PairsForm>(r#"[{"of":["bil","eir"],"turns":[5,6],"held":6},{"of":["eir","rune"],"turns":[7]}]"#);
    check::<PaceForm>(r#"{"most":30,"sent":[5,6],"full":true}"#);
    check::<PaceForm>(r#"{"most":30,"sent":[]}"#);
}

#[test]
fn another_form_is_refused_by_its_version() {
    let told = |bytes: &[u8]| decode::<RoomForm>(Table::Rooms, b"!r\0", bytes).unwrap_err().to_string();
    assert_eq!(told(b"\x02{}"), r"the record !r\x00 in rooms cannot be read: its form has version 2");
    assert_eq!(told(b""), r"the record !r\x00 in rooms cannot be read: it is empty");
}

#[test]
fn what_a_broken_row_holds_is_not_said() {
    let bytes = b"\x01{\"device\":\"D\",\"token\":{\"hush\":1},\"name\":null,\"avatar\":null}";
    let told = decode::<IdentityForm>(Table::Identities, b"@e:x.org", bytes).err().unwrap().to_string();
    assert!(told.contains("identities") && told.contains("@e:x.org"), "{told}");
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn lanes_come_back_as_they_went() {
    use crate::conversation::{Lane, RegisterName};
    let lanes = [Lane::Register(RegisterName("a".to_owned())), Lane::Direct("!d:x.org".try_into().unwrap())];
    for lane in lanes {
        assert_eq!(Lane::from(LaneForm::from(&lane)), lane);
    }
}
