//! Sizing: the number of sources that a server can take, and the resources that a number of sources needs. Pure functions.
//!
//! A source (a camera, a probe, a sensor) makes blocks of a size at a rate. A block takes time on the source's own link, on the
//! server's link, on the disk, in processing and in the database. Each of these resources has a capacity; the one that is used
//! up first is the bottleneck (the operational bound of Denning and Buzen 1978: throughput is at most the least of capacity
//! over demand). Main functions: [`size`] and [`needs`].
//!
//! Capacities have intervals where they were measured; results carry them on. Invariant: a result's interval contains its value.

/// A figure with its interval; both ends equal the figure where it was set rather than measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Figure {
    /// Creates a figure that is known exactly.
    pub fn exact(value: f64) -> Self {
        Figure { value, low: value, high: value }
    }

    /// Creates a figure with its interval. `None` where the figure is not in the interval or anything is not finite.
    pub fn between(value: f64, low: f64, high: f64) -> Option<Self> {
        (value.is_finite() && low.is_finite() && high.is_finite() && low <= value && value <= high).then_some(Figure {
            value,
            low,
            high,
        })
    }

    /// Returns the reciprocal, with the ends of the interval exchanged; for figures above zero.
    pub fn inverse(self) -> Self {
        Figure { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }

    /// Returns the figure times a factor above zero.
    pub fn times(self, factor: f64) -> Self {
        Figure { value: self.value * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The blocks that one source makes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourceKind {
    /// Blocks per second, above zero.
    pub blocks_per_s: f64,
    /// Bytes of a block, above zero.
    pub block_bytes: f64,
    /// Capacity of the source's own link in bits per second; `None` for no limit.
    pub link_bits_per_s: Option<f64>,
}

impl SourceKind {
    /// Returns the rate at which the source makes data, in bits per second.
    pub fn made_bits_per_s(&self) -> f64 {
        8.0 * self.block_bytes * self.blocks_per_s
    }

    /// Returns the part of that rate that the source's link carries, in bits per second.
    pub fn offered_bits_per_s(&self) -> f64 {
        self.link_bits_per_s.map_or(self.made_bits_per_s(), |link| link.min(self.made_bits_per_s()))
    }

    /// Returns the share of the source's blocks that its link carries, 0..1. Below 1 the backlog grows without end.
    pub fn carried_share(&self) -> f64 {
        self.offered_bits_per_s() / self.made_bits_per_s()
    }

    /// Returns the blocks per second that arrive from the source's link.
    pub fn offered_blocks_per_s(&self) -> f64 {
        self.blocks_per_s * self.carried_share()
    }
}

/// The resources of a server. A resource that is `None` is not considered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Server {
    /// Capacity of the server's link, in bits per second.
    pub link_bits_per_s: Option<Figure>,
    /// Write rate of the disk, in bytes per second.
    pub disk_bytes_per_s: Option<Figure>,
    /// How often each byte of a block is written: for instance 2 for the inbox and the store.
    pub writes_per_byte: f64,
    /// Time for which a block takes one core, in seconds.
    pub processing_s: Option<Figure>,
    /// Number of cores that process blocks.
    pub cores: f64,
    /// The load line of the database, in operations per second.
    pub load_line_per_s: Option<Figure>,
    /// Operations in the database per block.
    pub operations_per_block: f64,
    /// Share of link, disk and cores that may be used, 0..1: the rest is for bursts. The load line is used whole, because its
    /// bound on response times is kept already.
    pub used_share: f64,
}

/// The capacity of a resource and the part of it that a source uses, in the resource's own unit per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The resource.
    pub resource: Resource,
    /// The usable part of its capacity.
    pub usable: Figure,
    /// The part that one source uses.
    pub per_source: Figure,
    /// The number of sources that the resource carries.
    pub sources: Figure,
}

/// A resource that can be used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The server's link, in bits per second.
    Link,
    /// The disk, in bytes per second.
    Disk,
    /// The cores that process, in seconds of a core per second.
    Processing,
    /// The database, in operations per second.
    Database,
}

impl Resource {
    /// Returns the name for people and for JSON.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Link => "server link",
            Resource::Disk => "disk",
            Resource::Processing => "processing",
            Resource::Database => "database",
        }
    }
}

/// Returns the number of sources that each resource carries, the bottleneck first; empty where no resource is known.
pub fn size(source: &SourceKind, server: &Server) -> Vec<Limit> {
    let blocks = source.offered_blocks_per_s();
    let bytes = source.offered_bits_per_s() / 8.0;
    let share = server.used_share;
    let exact = Figure::exact;
    let mut limits = Vec::new();
    let mut push = |resource, usable: Option<Figure>, per_source: Figure| {
        if let Some(usable) = usable {
            let (value, low, high) =
                (usable.value / per_source.value, usable.low / per_source.high, usable.high / per_source.low);
            limits.push(Limit { resource, usable, per_source, sources: Figure { value, low, high } });
        }
    };
    push(Resource::Link, server.link_bits_per_s.map(|link| link.times(share)), exact(8.0 * bytes));
    let written = exact(bytes * server.writes_per_byte);
    push(Resource::Disk, server.disk_bytes_per_s.map(|disk| disk.times(share)), written);
    if let Some(processing) = server.processing_s {
        push(Resource::Processing, Some(exact(server.cores * share)), processing.times(blocks));
    }
    push(Resource::Database, server.load_line_per_s, exact(blocks * server.operations_per_block));
    limits.sort_by(|a, b| a.sources.value.total_cmp(&b.sources.value));
    limits
}

/// Returns for each resource how many times its usable capacity a number of sources needs, in the order of `limits` (from [`size`]: the largest first).
pub fn needs(limits: &[Limit], sources: f64) -> Vec<(Resource, Figure)> {
    limits.iter().map(|limit| (limit.resource, limit.sources.inverse().times(sources))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A camera of Staszkiwicz et al., section III: 2 blocks of at most 2 MB every 5 seconds.
    fn camera(link_bits_per_s: Option<f64>) -> SourceKind {
        SourceKind { blocks_per_s: 2.0 / 5.0, block_bytes: 2e6, link_bits_per_s }
    }

    fn server() -> Server {
        Server { writes_per_byte: 1.0, cores: 1.0, operations_per_block: 1.0, used_share: 1.0, ..Server::default() }
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    #[test]
    fn table_2_of_the_paper_is_met() {
        let of_100 = |link| 100.0 * camera(link).offered_bits_per_s();
        assert!(is_near(camera(None).made_bits_per_s(), 6.4e6));
        assert!(is_near(of_100(None), 640e6));
        assert!(is_near(of_100(Some(5.76e6)), 576e6));
        // The paper prints 37.5 Mbps, which is 38,400 kbit/s divided by 1,024; the other rows are divided by 1,000.
        assert!(is_near(of_100(Some(384e3)), 38.4e6));
        assert!(is_near(of_100(Some(384e3)) / 1e3 / 1024.0, 37.5));
        assert!(is_near(camera(Some(384e3)).carried_share(), 0.06));
    }

    #[test]
    fn the_resource_that_is_used_up_first_is_the_bottleneck() {
        let server = Server {
            link_bits_per_s: Some(Figure::exact(1e9)),
            disk_bytes_per_s: Some(Figure::exact(85e6)),
            processing_s: Some(Figure::exact(0.02)),
            ..server()
        };
        let limits = size(&camera(None), &server);
        let seen: Vec<(Resource, f64)> = limits.iter().map(|limit| (limit.resource, limit.sources.value)).collect();
        // 85 MB/s are 680 Mbit/s: 106 cameras; 1 Gbit/s are 156; 50 blocks a second are 125.
        assert_eq!(seen[0], (Resource::Disk, 106.25));
        assert_eq!(seen[1], (Resource::Processing, 125.0));
        assert_eq!(seen[2], (Resource::Link, 156.25));
        let twice = Server { writes_per_byte: 2.0, ..server };
        assert_eq!(size(&camera(None), &twice)[0].sources.value, 53.125);
    }

    #[test]
    fn the_reverse_of_a_size_is_one_server() {
        let server = Server { load_line_per_s: Figure::between(800.0, 760.0, 850.0), ..server() };
        let limits = size(&camera(None), &server);
        assert_eq!(limits[0].sources, Figure { value: 2000.0, low: 1900.0, high: 2125.0 });
        let (resource, needed) = needs(&limits, 2000.0)[0];
        assert_eq!((resource, needed.value), (Resource::Database, 1.0));
        assert!(is_near(needed.low, 2000.0 / 2125.0) && is_near(needed.high, 2000.0 / 1900.0));
    }

    #[test]
    fn longer_processing_carries_fewer_sources() {
        let server = Server { processing_s: Figure::between(0.02, 0.016, 0.025), cores: 2.0, ..server() };
        let sources = size(&camera(None), &server)[0].sources;
        assert!(is_near(sources.value, 250.0) && is_near(sources.low, 200.0) && is_near(sources.high, 312.5));
    }

    #[test]
    fn the_load_line_is_used_whole_and_the_rest_in_part() {
        let server = Server {
            link_bits_per_s: Some(Figure::exact(640e6)),
            load_line_per_s: Some(Figure::exact(40.0)),
            used_share: 0.5,
            ..server()
        };
        let limits = size(&camera(None), &server);
        assert!(is_near(limits[0].sources.value, 50.0) && limits[0].resource == Resource::Link);
        assert!(is_near(limits[1].sources.value, 100.0));
    }

    #[test]
    fn figures_outside_of_their_interval_are_refused() {
        assert_eq!(Figure::between(1.0, 2.0, 3.0), None);
        assert_eq!(Figure::between(f64::NAN, 0.0, 1.0), None);
        assert!(size(&camera(None), &server()).is_empty(), "nothing is known of this server");
    }
}
