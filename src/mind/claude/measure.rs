//! What an attempt used, gathered from the lines of stdout.

use super::wire::{Assistant, Outcome, Output, Request};
use crate::persona::session::Usd;
use crate::persona::session::ledger::spent;
use crate::persona::{RequestUsage, Usage};

/// The requests of a turn so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    requests: Vec<Request>,
}

impl Measured {
    /// Takes note of one line of stdout.
    ///
    /// A request shows at its first event, and again with each block of its answer.
    pub(super) fn note(&mut self, output: &Output) {
        match output {
            Output::Began(request) | Output::Assistant(Assistant { request: Some(request), .. }) => {
                let known = self.requests.iter().any(|known| known.message == request.message);
                if !known {
                    self.requests.push(request.clone());
                }
            }
            Output::Counted(output) => {
                if let Some(request) = self.requests.last_mut() {
                    request.usage.output = *output;
                }
            }
            Output::Init { .. }
            | Output::Echo { .. }
            | Output::Done { .. }
            | Output::Assistant(_)
            | Output::Retry(_)
            | Output::LimitReached { .. }
            | Output::Compacted
            | Output::Result(_)
            | Output::Other => {}
        }
    }

    /// What the turn used, if it ended without a result.
    pub(super) fn usage(self) -> Usage {
        let requests: Vec<RequestUsage> = self.requests.into_iter().map(|request| request.usage).collect();
        Usage { requests, ..Usage::default() }
    }

    /// What the turn used by its result, which cost `money` USD.
    pub(super) fn ended(self, outcome: &Outcome, money: f64) -> Usage {
        Usage { money: Some(money), window: outcome.window, ..self.usage() }
    }
}

/// What a result has cost, in USD: what the CLI says of it, else the growth of its sum, which was `before`.
///
/// That sum goes on from the process before if it ended well, so it is not used where it can be helped.
pub(super) fn cost(outcome: &Outcome, before: f64) -> f64 {
    let grown = || spent(Usd::of_dollars(before), Usd::of_dollars(outcome.total_cost_usd)).dollars();
    outcome.cost_since_last.unwrap_or_else(grown).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(message: &str, input: u64) -> Request {
        let usage = RequestUsage { input, output: 1, ..RequestUsage::default() };
        Request { message: message.to_owned(), usage }
    }

    fn block(of: &Request) -> Output {
        Output::Assistant(Assistant { request: Some(of.clone()), ..Assistant::default() })
    }

    #[test]
    fn each_request_is_counted_once_with_its_last_count_of_output() {
        let (first, second) = (request("a", 1_000), request("b", 2_000));
        let mut measured = Measured::default();
        for output in [
            Output::Counted(7),
            Output::Began(first.clone()),
            block(&first),
            block(&first),
            Output::Counted(30),
            // Without partial messages a request shows with its first block.
            block(&second),
            Output::Counted(40),
        ] {
            measured.note(&output);
        }
        let outcome = Outcome { window: Some(5), ..Outcome::default() };
        let usage = measured.ended(&outcome, 0.25);
        let counted: Vec<(u64, u64)> =
            usage.requests.iter().map(|request| (request.input, request.output)).collect();
        assert_eq!(counted, [(1_000, 30), (2_000, 40)]);
        assert_eq!((usage.money, usage.window), (Some(0.25), Some(5)));
    }

    #[test]
    fn a_result_costs_what_the_cli_says_else_what_its_sum_has_grown_by_also_after_it_began_anew() {
        let cost_of = |cost_since_last, total_cost_usd, before| {
            cost(&Outcome { cost_since_last, total_cost_usd, ..Outcome::default() }, before)
        };
        assert_eq!(cost_of(Some(0.25), 9.0, 4.0), 0.25);
        assert_eq!(cost_of(None, 0.75, 0.5), 0.25);
        assert_eq!(cost_of(None, 0.25, 0.5), 0.25);
    }

    #[test]
    fn what_the_cli_made_up_is_no_request() {
        let mut measured = Measured::default();
        measured.note(&Output::Assistant(Assistant::default()));
        assert_eq!(measured.usage(), Usage::default());
    }
}
