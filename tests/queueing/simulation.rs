//! Discrete-event simulations of the systems that the models describe: every operation is followed on its own, and no formula
//! of the models is used.

use loadline::statistics::random::Random;

/// The three times of an operation, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    pub intended_s: f64,
    pub sent_s: f64,
    pub done_s: f64,
}

pub fn exponential(random: &mut Random, rate_per_s: f64) -> f64 {
    -(1.0 - random.unit()).ln() / rate_per_s
}

/// Response times of M/M/1, first come first served, that begins in its stationary state (Lindley's recursion).
pub fn mm1_response_s(random: &mut Random, rate_per_s: f64, mu_per_s: f64, count: usize) -> Vec<f64> {
    let mut wait_s = 0.0;
    if random.unit() < rate_per_s / mu_per_s {
        wait_s = exponential(random, mu_per_s - rate_per_s);
    }
    (0..count)
        .map(|_| {
            let response_s = wait_s + exponential(random, mu_per_s);
            wait_s = f64::max(response_s - exponential(random, rate_per_s), 0.0);
            response_s
        })
        .collect()
}

/// One server in order of arrival behind workers, with service times of one's own: a worker is free when an operation that was
/// sent as many operations before is done.
pub fn server_behind_workers(
    random: &mut Random,
    rate_per_s: f64,
    workers: usize,
    count: usize,
    service_s: impl Fn(&mut Random) -> f64,
) -> Vec<Times> {
    let mut all: Vec<Times> = Vec::with_capacity(count);
    let mut now_s = 0.0;
    for index in 0..count {
        now_s += exponential(random, rate_per_s);
        let sent_s = if index >= workers { f64::max(now_s, all[index - workers].done_s) } else { now_s };
        let free_s = all.last().map_or(0.0, |last| last.done_s);
        let done_s = f64::max(sent_s, free_s) + service_s(random);
        all.push(Times { intended_s: now_s, sent_s, done_s });
    }
    all
}

/// Response times of c servers and one queue (Kiefer and Wolfowitz).
pub fn servers_response_s(
    random: &mut Random,
    rate_per_s: f64,
    mu_per_s: f64,
    servers: usize,
    count: usize,
) -> Vec<f64> {
    let mut free_s = vec![0.0_f64; servers];
    let mut now_s = 0.0;
    (0..count)
        .map(|_| {
            now_s += exponential(random, rate_per_s);
            let next = (0..servers).min_by(|a, b| free_s[*a].total_cmp(&free_s[*b])).unwrap_or(0);
            free_s[next] = free_s[next].max(now_s) + exponential(random, mu_per_s);
            free_s[next] - now_s
        })
        .collect()
}

/// A server whose speed depends on how many operations are at it, behind workers and one queue. `rate_of` gives completions per
/// second with k at the server; which of them is completed is the first, or any when they are served side by side.
pub fn load_dependent(
    random: &mut Random,
    rate_per_s: f64,
    workers: usize,
    is_parallel: bool,
    count: usize,
    rate_of: impl Fn(usize) -> f64,
) -> Vec<Times> {
    let mut done = Vec::with_capacity(count);
    let mut at_server: Vec<Times> = Vec::new();
    let mut waiting = std::collections::VecDeque::new();
    let mut now_s = 0.0;
    while done.len() < count {
        let completions_per_s = if at_server.is_empty() { 0.0 } else { rate_of(at_server.len()) };
        now_s += exponential(random, rate_per_s + completions_per_s);
        if random.unit() * (rate_per_s + completions_per_s) < rate_per_s {
            waiting.push_back(now_s);
        } else {
            let which = if is_parallel { random.below(at_server.len()) } else { 0 };
            done.push(Times { done_s: now_s, ..at_server.remove(which) });
        }
        while at_server.len() < workers {
            let Some(intended_s) = waiting.pop_front() else { break };
            at_server.push(Times { intended_s, sent_s: now_s, done_s: f64::NAN });
        }
    }
    done
}

/// Response times of one server that stalls and recovers at random, busy or not; work goes on where it stopped.
pub fn stalling_response_s(
    random: &mut Random,
    rate_per_s: f64,
    mu_per_s: f64,
    (stall_per_s, recovery_per_s): (f64, f64),
    count: usize,
) -> Vec<f64> {
    let mut responses = Vec::with_capacity(count);
    // The server is on until `change_s`, or off until then.
    let (mut is_on, mut clock_s) = (true, 0.0);
    let mut change_s = exponential(random, stall_per_s);
    let mut now_s = 0.0;
    while responses.len() < count {
        now_s += exponential(random, rate_per_s);
        let mut left_s = exponential(random, mu_per_s);
        clock_s = f64::max(clock_s, now_s);
        loop {
            while change_s <= clock_s {
                is_on = !is_on;
                change_s += exponential(random, if is_on { stall_per_s } else { recovery_per_s });
            }
            if is_on && clock_s + left_s <= change_s {
                clock_s += left_s;
                break;
            }
            if is_on {
                left_s -= change_s - clock_s;
            }
            clock_s = change_s;
        }
        responses.push(clock_s - now_s);
    }
    responses
}

/// Response times of a closed loop: clients think, then wait for one server, first come first served.
pub fn closed_response_s(random: &mut Random, clients: usize, think_s: f64, service_s: f64, count: usize) -> Vec<f64> {
    let mut ready_s: Vec<f64> = (0..clients).map(|_| exponential(random, 1.0 / think_s)).collect();
    let mut free_s = 0.0;
    (0..count)
        .map(|_| {
            let next = (0..clients).min_by(|a, b| ready_s[*a].total_cmp(&ready_s[*b])).unwrap_or(0);
            let arrived_s = ready_s[next];
            free_s = f64::max(free_s, arrived_s) + exponential(random, 1.0 / service_s);
            ready_s[next] = free_s + exponential(random, 1.0 / think_s);
            free_s - arrived_s
        })
        .collect()
}
