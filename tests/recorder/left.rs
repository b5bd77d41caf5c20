//! What a recorder that was killed has left in the database: tables and columns that it had not noted yet.

use super::harness::{Directory, Target, write};

/// A recorder that is killed between making a table or a column and noting that it did leaves it to the next one, whatever that one's
/// records have: other columns, or other values in the same ones.
pub fn what_a_killed_recorder_has_made_is_taken_over(target: &Target) {
    for layout in ["star", "wide", "star-hot", "eav", "json"] {
        let name = format!("left_{}", layout.replace('-', "_"));
        let layout = format!("name = \"{layout}\"\n{}", if layout == "star-hot" { "hot = [\"f\"]" } else { "" });
        let killed = Directory::new();
        let started = target.start(&killed, &layout, "");
        assert_eq!(write(started.http, &format!("{name},host=a f=1i,first=1 1000\n")).status, 204);
        started.wait_until_committed();
        started.stop();
        target.session().run("DELETE FROM loadline_column WHERE role IN ('table', 'tag', 'field', 'hot')").unwrap();

        let directory = Directory::new();
        let started = target.start(&directory, &layout, "");
        let lines = format!("{name},host=a,site=s f=2i,second=2 2000\n{name},host=a f=2.5,first=2 3000\n");
        assert_eq!(write(started.http, &lines).status, 204);
        started.wait_until_committed();
        let counts = started.stop().counts;
        let listed = loadline::recorder::spool::list(&directory.0.join("spool"), 10).unwrap();
        let listed: Vec<_> = listed.iter().map(|one| (one.line.trim(), one.reason.as_str())).collect();
        let takes_all = layout.contains("eav") || layout.contains("json");
        assert_eq!((counts.committed, counts.quarantined), if takes_all { (2, 0) } else { (1, 1) }, "{listed:?}");
        if !takes_all {
            assert!(listed[0].0.contains("f=2.5") && listed[0].1.contains("its column holds integer"), "{listed:?}");
        }
    }
}
