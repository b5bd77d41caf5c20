//! Resource use of machine and processes. Main types: [`Resources`] and [`ResourceSample`].

use serde::{Deserialize, Serialize};

/// Resources used in the measured phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Means over the measured phase.
    pub mean: ResourceSample,
    /// Number of samples.
    pub samples: u32,
    /// CPU time that monitoring itself took, in seconds.
    pub monitor_cpu_s: f64,
    /// CPUs that processes other than client, server and recorder kept busy; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu: Option<f64>,
    /// Whether the server's processes are on another machine or not known, so that its CPU use is not reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub server_unknown: bool,
    /// CPUs of the machine; `None` where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Share of the CPU time, 0..1, that a hypervisor may take from the trial, or other processes from a load thread; `None` for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_permitted: Option<f64>,
}

impl Resources {
    /// Returns whether these can be figures of a machine. Figures of other machines come over a network.
    pub fn is_possible(&self) -> bool {
        let mean = &self.mean;
        let shares = [mean.user, mean.system, mean.iowait, mean.idle, mean.stolen];
        let amounts = [
            mean.at_s,
            mean.server_cpu,
            mean.recorder_cpu,
            mean.client_cpu,
            mean.write_requests_per_s,
            mean.written_bytes_per_s,
            mean.server_written_bytes_per_s,
            mean.memory_used_bytes,
            mean.server_memory_bytes,
            mean.recorder_memory_bytes,
            mean.client_memory_bytes,
            mean.received_bytes_per_s,
            mean.sent_bytes_per_s,
            mean.context_switches_per_s,
            self.monitor_cpu_s,
            self.others_cpu.unwrap_or_default(),
        ];
        shares.iter().all(|share| (0.0..=1.0).contains(share))
            && amounts.iter().all(|amount| (0.0..f64::INFINITY).contains(amount))
            && self.cpus.is_none_or(|cpus| cpus > 0)
    }
}

/// Rates and levels at one time, or their means. `at_s` counts from the start of the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResourceSample {
    /// End of the interval, in seconds.
    pub at_s: f64,
    /// CPU time of the whole machine in user mode, as a share of all CPUs, 0..1.
    pub user: f64,
    /// Share in the kernel, interrupts included.
    pub system: f64,
    /// Share idle with an outstanding disk request.
    pub iowait: f64,
    /// Share idle without an outstanding disk request.
    pub idle: f64,
    /// Share given to other machines by a hypervisor.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stolen: f64,
    /// CPUs that the server's processes kept busy: 1.5 is one and a half CPUs.
    pub server_cpu: f64,
    /// CPUs that the recorder in front of the database kept busy, including the NATS server where there is one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorder_cpu: f64,
    /// CPUs that loadline kept busy.
    pub client_cpu: f64,
    /// Write requests to all disks per second (the paper's wtps).
    pub write_requests_per_s: f64,
    /// Bytes written to all disks per second (the paper's bwrtn/s times 512).
    pub written_bytes_per_s: f64,
    /// Bytes that the server's processes handed to the kernel for writing, per second.
    pub server_written_bytes_per_s: f64,
    /// Memory of the machine in use, without caches.
    pub memory_used_bytes: f64,
    /// Resident memory of the server's processes.
    pub server_memory_bytes: f64,
    /// Resident memory of the recorder, including the NATS server where there is one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recorder_memory_bytes: f64,
    /// Resident memory of loadline.
    pub client_memory_bytes: f64,
    /// Bytes received on all network interfaces, the loopback one included, per second.
    pub received_bytes_per_s: f64,
    /// Bytes sent on all network interfaces, the loopback one included, per second.
    pub sent_bytes_per_s: f64,
    /// Context switches of the machine per second.
    pub context_switches_per_s: f64,
}

pub(super) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
