//! What strangers send: nothing of it falsifies, stops or starves what others store. Each attack on each kind of database.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "strangers/anteroom.rs"]
mod anteroom;
#[path = "strangers/apart.rs"]
mod apart;
#[path = "strangers/certificates.rs"]
mod certificates;
#[path = "strangers/clients.rs"]
mod clients;
#[path = "strangers/copies.rs"]
mod copies;
#[path = "strangers/costs.rs"]
mod costs;
#[path = "strangers/failover.rs"]
mod failover;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[path = "strangers/lines.rs"]
mod lines;
#[path = "strangers/names.rs"]
mod names;
#[path = "strangers/older.rs"]
mod older;
#[path = "server/port.rs"]
mod port;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[path = "strangers/quarantine.rs"]
mod quarantine;
#[path = "strangers/senders.rs"]
mod senders;
#[path = "strangers/shares.rs"]
mod shares;
#[path = "recorder/spools.rs"]
mod spools;
#[path = "strangers/streams.rs"]
mod streams;
#[path = "strangers/types.rs"]
mod types;

use harness::{Directory, Target};

fn attacks(target: &Target) {
    names::names_that_become_alike_stay_apart(target);
    names::what_is_there_and_is_not_the_recorders_is_never_used(target);
    names::names_of_the_database_itself_stop_nobody(target);
    lines::lines_that_are_too_large_are_refused_at_the_door(target);
    lines::columns_are_bounded_within_a_batch(target);
    lines::values_without_columns_are_stored_whole_or_kept(target);
    lines::the_first_value_says_what_a_column_holds(target);
    apart::identities_that_somebody_removes_are_begun_again(target);
    apart::a_table_that_is_gone_stops_only_its_own_measurement(target);
    senders::an_id_that_a_stranger_has_used_is_new(target);
    senders::without_tokens_ids_belong_to_addresses(target);
    senders::senders_do_what_they_may_and_no_more(target);
    senders::requests_name_one_host(target);
    streams::lines_that_nobody_asks_about_are_stored(target);
    streams::a_stream_without_pauses_is_stored_while_it_goes_on(target);
    streams::lines_that_are_no_points_are_kept_in_quarantine(target);
    clients::clients_of_influxdb_3_write_unchanged(target);
    clients::clients_of_http2_write_unchanged(target);
    clients::zstd_is_read_within_its_bounds(target);
    clients::binary_values_are_refused_with_the_remedy(target);
    // An embedded database is written without a spool, and nobody changes the type of its columns.
    if target.endpoint.is_some() {
        shares::a_source_that_sends_too_much_does_not_hold_up_the_others(target);
        apart::a_table_that_is_locked_stops_only_its_own_measurement(target);
        apart::a_refusal_that_nobody_knows_ends_in_quarantine_and_stops_nobody(target);
        names::recorders_that_make_the_same_tables_at_once_store_everything(target);
        types::a_column_whose_type_is_changed_holds_what_was_sent(target);
        copies::a_spool_that_is_restored_from_a_copy_loses_nothing_new(target);
        copies::a_spool_that_is_damaged_loses_nothing_new(target);
        copies::copies_of_a_spool_that_work_at_once_store_everything_once(target);
    }
}

/// What is tried with the quarantine takes a server of its own for a while.
fn quarantine_of(target: &Target) {
    quarantine::a_sender_whose_records_are_refused_closes_its_own_door(target);
    quarantine::the_quarantine_is_cleared_while_the_recorder_runs(target);
    quarantine::replays_that_are_killed_lose_and_double_nothing(target);
}

#[test]
fn quarantine_of_a_recorder_into_sqlite() {
    quarantine_of(&Target::sqlite(&Directory::new()));
}

#[test]
fn quarantine_of_a_recorder_into_mariadb() {
    quarantine_of(&Target::server("mariadb"));
}

#[test]
fn quarantine_of_a_recorder_into_postgresql() {
    quarantine_of(&Target::server("postgres"));
}

#[test]
fn older_spools_of_a_recorder_into_sqlite() {
    older::large_lines_of_an_older_spool_are_stored_or_kept(&Target::sqlite(&Directory::new()));
}

#[test]
fn older_spools_of_a_recorder_into_mariadb() {
    older::large_lines_of_an_older_spool_are_stored_or_kept(&Target::server("mariadb"));
}

#[test]
fn older_spools_of_a_recorder_into_postgresql() {
    older::large_lines_of_an_older_spool_are_stored_or_kept(&Target::server("postgres"));
}

fn failover_of(target: &Target) {
    failover::a_server_that_is_read_only_for_a_while_needs_no_restart(target);
    failover::a_server_that_is_empty_all_at_once_needs_no_restart(target);
}

#[test]
fn mariadb_that_is_another_one_below_a_recorder() {
    failover_of(&Target::server("mariadb"));
}

#[test]
fn postgresql_that_is_another_one_below_a_recorder() {
    failover_of(&Target::server("postgres"));
}

#[test]
fn a_token_is_made_with_its_hash() {
    senders::a_token_is_made_with_its_hash();
}

#[test]
fn strangers_of_a_recorder_into_sqlite() {
    attacks(&Target::sqlite(&Directory::new()));
}

#[test]
fn strangers_of_a_recorder_into_mariadb() {
    attacks(&Target::server("mariadb"));
}

#[test]
fn strangers_of_a_recorder_into_postgresql() {
    attacks(&Target::server("postgres"));
}

#[test]
fn only_clients_with_a_certificate_are_let_in() {
    certificates::only_clients_with_a_certificate_are_let_in();
}

#[test]
fn beginnings_of_http2_are_ended_in_time() {
    clients::beginnings_of_http2_are_ended_in_time(&Target::sqlite(&Directory::new()));
}

#[test]
fn a_log_that_nobody_reads_stops_nobody() {
    costs::a_log_that_nobody_reads_stops_nobody();
}

#[test]
fn bad_lines_cost_little_more_than_their_bytes() {
    costs::bad_lines_cost_little_more_than_their_bytes();
}

#[test]
fn strangers_do_not_fill_the_audit_file() {
    costs::strangers_do_not_fill_the_audit_file();
}

#[test]
fn secrets_are_told_to_nobody() {
    costs::secrets_are_told_to_nobody();
}

#[test]
fn silent_and_slow_connections_keep_nobody_out() {
    anteroom::silent_and_slow_connections_keep_nobody_out();
}

#[test]
fn nothing_that_all_share_is_taken_before_a_token_is_known() {
    anteroom::nothing_that_all_share_is_taken_before_a_token_is_known();
}

#[test]
fn what_is_only_announced_holds_nothing() {
    anteroom::what_is_only_announced_holds_nothing();
}

#[test]
fn a_patience_does_not_begin_anew_with_each_byte() {
    anteroom::a_patience_does_not_begin_anew_with_each_byte();
}

#[test]
fn an_address_has_its_own_bound() {
    anteroom::an_address_has_its_own_bound();
}

#[test]
fn without_tokens_there_is_room_for_many_and_silence_keeps_nobody_out() {
    anteroom::without_tokens_there_is_room_for_many_and_silence_keeps_nobody_out();
}

#[test]
fn metrics_have_an_address_and_a_token_of_their_own() {
    anteroom::metrics_have_an_address_and_a_token_of_their_own();
}

#[test]
fn silent_connections_keep_nobody_from_the_office_and_from_uploading() {
    anteroom::silent_connections_keep_nobody_from_the_office_and_from_uploading();
}
