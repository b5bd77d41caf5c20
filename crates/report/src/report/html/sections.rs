//! Lists the sections of the page. Main items: [`SECTIONS`], an entry for each, and [`contents`].

use maud::{Markup, html};

use super::section::{Page, Section};
use super::{
    agents, arrival, backlog, bytes, comparing, conflicts, disk, environment, events, evolution, freshness, operations,
    own_tables, price, queries, recorded, resources, response, retention, tables, throughput, timeline,
};

/// All sections, in the order of the page and of its contents.
pub const SECTIONS: &[Section] = &[
    queries::EXECUTION_TIME,
    queries::PLANS,
    freshness::SECTION,
    recorded::OF_UPLOADS,
    disk::SECTION,
    throughput::SECTION,
    price::SECTION,
    bytes::SECTION,
    recorded::OF_RECORDS,
    arrival::SECTION,
    backlog::SECTION,
    comparing::OPERATIONS,
    response::SECTION,
    operations::SECTION,
    own_tables::SECTION,
    agents::SECTION,
    resources::SECTION,
    response::DISTRIBUTION,
    response::COURSE,
    timeline::SECTION,
    comparing::RATIOS,
    comparing::P_VALUES,
    tables::CLAIMS,
    events::SECTION,
    conflicts::SECTION,
    evolution::SECTION,
    retention::SECTION,
    tables::TRIALS,
    environment::SECTION,
];

/// Returns the sections that a page has.
fn shown(page: &Page<'_>) -> impl Iterator<Item = &'static Section> {
    SECTIONS.iter().filter(move |section| (section.is_shown)(page))
}

/// Returns links to the sections of a page.
pub fn contents(page: &Page<'_>) -> Markup {
    html! { nav { @for section in shown(page) { a href={ "#" (section.id) } { ((section.title)(page)) } } } }
}

/// Draws all sections of a page.
pub fn sections(page: &Page<'_>) -> Markup {
    html! { @for section in shown(page) { ((section.draw)(page)) } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_sections_that_a_page_can_have_at_once_have_one_anchor() {
        let ids: Vec<&str> = SECTIONS.iter().map(|section| section.id).collect();
        // Records through a recorder come first if the study is about uploads, and later otherwise.
        let twice = ids.iter().filter(|id| **id == "recorded").count();
        assert_eq!((twice, ids.iter().collect::<BTreeSet<_>>().len()), (2, ids.len() - 1));
    }
}
